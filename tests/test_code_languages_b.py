"""The harder syntax of shell, C, C++, Ruby, Kotlin and Swift."""

from cleats.toolsets.code.facts import Chunk
from cleats.toolsets.code.languages.engine import Parsed, declarations


def read(lang: str, source: str) -> Parsed:
    return declarations(lang, f"sample.{lang}", source.encode())


def chunk(lang: str, source: str, name: str) -> Chunk:
    (found,) = [each for each in read(lang, source).chunks if each.name == name]
    return found


def kinds(lang: str, source: str) -> dict[str, str]:
    return {each.name: each.kind for each in read(lang, source).chunks if each.kind != "module"}


def test_both_ways_to_declare_a_shell_function_are_seen() -> None:
    source = "a() { b; }\nfunction c { d; }\nfunction e() ( f )\n"

    assert kinds("shell", source) == {"a": "function", "c": "function", "e": "function"}
    assert chunk("shell", source, "e").calls == ["f"]


def test_what_a_script_sources_it_imports() -> None:
    found = read("shell", 'source ./a.sh\n. "$DIR/b.sh"\nexport PATH=x NAME\n')

    assert found.imports == ["./a.sh", "$DIR/b.sh"]
    assert found.exports == ["PATH", "NAME"]


def test_arms_of_case_and_if_are_branches_and_the_last_resort_is_none() -> None:
    source = """f() {
  if a; then b; elif c; then d; else e; fi
  case "$1" in x|y) g ;; z) h ;; *) i ;; esac
  until j; do k; done
}
"""
    found = chunk("shell", source, "f")

    assert (found.branches, found.loops) == (4, 1)
    blocks = {step.calls[0].callee: step.block for step in found.steps if step.calls}
    assert blocks["a"] == 0
    assert len({blocks[name] for name in "bdeghik"}) == 7


def test_shell_variables_are_read_and_written_in_all_their_forms() -> None:
    source = """f() {
  local a="$b" c
  d=${e:-$g}
  ((h += 1, i = j))
  k+=(l "$m")
  read -r n
  "$o" "$@"
  p[1]=$2
}
"""
    found = chunk("shell", source, "f")

    assert found.writes == ["a", "d", "h", "i", "k", "n", "p[]"]
    assert found.reads == ["b", "e", "g", "h", "j", "m", "k", "o", "$@", "$2"]
    assert found.aliases == ["a=b", "i=j"]
    assert found.mutates == ["p[]"]
