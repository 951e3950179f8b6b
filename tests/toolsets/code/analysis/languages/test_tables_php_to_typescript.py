"""The harder syntax of shell, C, C++, Ruby, Kotlin and Swift."""

from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.analysis.languages.engine import ParsedFile, parse_declarations


def parse_source(lang: str, source: str) -> ParsedFile:
    return parse_declarations(lang, f"sample.{lang}", source.encode())


def find_chunk(lang: str, source: str, name: str) -> Chunk:
    (chunk,) = [candidate for candidate in parse_source(lang, source).chunks if candidate.name == name]
    return chunk


def map_kinds(lang: str, source: str) -> dict[str, str]:
    return {chunk.name: chunk.kind for chunk in parse_source(lang, source).chunks if chunk.kind != "module"}


def test_both_ways_to_declare_a_shell_function_are_seen() -> None:
    source = "a() { b; }\nfunction c { d; }\nfunction e() ( f )\n"

    assert map_kinds("shell", source) == {"a": "function", "c": "function", "e": "function"}
    assert find_chunk("shell", source, "e").calls == ["f"]


def test_what_a_script_sources_it_imports() -> None:
    parsed_file = parse_source("shell", 'source ./a.sh\n. "$DIR/b.sh"\nexport PATH=x NAME\n')

    assert parsed_file.imports == ["./a.sh", "$DIR/b.sh"]
    assert parsed_file.exports == ["PATH", "NAME"]


def test_arms_of_case_and_if_are_branches_and_the_last_resort_is_none() -> None:
    source = """f() {
  if a; then b; elif c; then d; else e; fi
  case "$1" in x|y) g ;; z) h ;; *) i ;; esac
  until j; do k; done
}
"""
    chunk = find_chunk("shell", source, "f")

    assert (chunk.branches, chunk.loops) == (4, 1)
    blocks = {step.calls[0].callee: step.block for step in chunk.steps if step.calls}
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
    chunk = find_chunk("shell", source, "f")

    assert chunk.writes == ["a", "d", "h", "i", "k", "n", "p[]"]
    assert chunk.reads == ["b", "e", "g", "h", "j", "m", "k", "o", "$@", "$2"]
    assert chunk.aliases == ["a=b", "i=j"]
    assert chunk.mutates == ["p[]"]


C_SOURCE = """
#define SQUARE(x) (times(x, x))
#define SMALL 3
int prototype(int a);
struct forward;
typedef unsigned long count_t;
#ifdef WITH_POOL
static inline char *grow(char *from, int (*how)(int), char to[MAX]) { return how(1); }
#else
int grow_not(void) { return 0; }
#endif
typedef struct node { struct node *next; int x, *y; } node_t;
union word { int i; float f; };
enum color { RED, GREEN = 2 };
int (*chooser(int key))(void) { return 0; }
static const char *names[] = {
    "one",
};
"""


def test_in_c_functions_types_and_names_for_types_are_chunks() -> None:
    assert map_kinds("c", C_SOURCE) == {
        "SQUARE": "macro",
        "SMALL": "macro",
        "prototype": "function",
        "count_t": "type",
        "grow": "function",
        "grow_not": "function",
        "node_t": "struct",
        "word": "struct",
        "color": "enum",
        "color.RED": "constant",
        "color.GREEN": "constant",
        "chooser": "function",
        "names": "constant",
    }


def test_a_c_name_and_its_parameters_are_found_within_the_declarator() -> None:
    grow, chooser = find_chunk("c", C_SOURCE, "grow"), find_chunk("c", C_SOURCE, "chooser")

    assert grow.params == ["from", "how", "to"]
    assert grow.modifiers == ["static", "inline"]
    assert (grow.visibility, chooser.visibility) == ("private", "public")
    assert chooser.params == ["key"]


def test_a_macro_has_parameters_and_calls() -> None:
    square = find_chunk("c", C_SOURCE, "SQUARE")

    assert square.params == ["x"]
    assert square.calls == ["times"]


def test_fields_have_their_types_and_an_old_tag_is_used() -> None:
    node = find_chunk("c", C_SOURCE, "node_t")

    assert [(field.name, field.type) for field in node.types] == [
        ("next", "struct node"),
        ("x", "int"),
        ("y", "int"),
    ]
    assert "node" in node.uses


def test_c_pointers_members_and_cases() -> None:
    source = """void f(struct node *p) {
    struct node n = { .x = 1 }, *q = p;
    p->next->x = 2;
    (*p).x += 3;
    *q = n;
    p->y[0]++;
    switch (p->x) { case 1: g(); break; case 2: case 3: h(); default: return; }
}
"""
    chunk = find_chunk("c", source, "f")

    assert chunk.mutates == ["p.next.x", "p.x", "q", "p.y[]"]
    assert chunk.aliases == ["q=p", "q=n"]
    assert (chunk.branches, chunk.breaks) == (3, 1)
    assert not chunk.returns
