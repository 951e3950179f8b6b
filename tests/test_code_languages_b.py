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


C = """
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
    assert kinds("c", C) == {
        "SQUARE": "macro",
        "prototype": "function",
        "count_t": "type",
        "grow": "function",
        "grow_not": "function",
        "node_t": "struct",
        "word": "struct",
        "color": "enum",
        "chooser": "function",
        "names": "constant",
    }


def test_a_c_name_and_its_parameters_are_found_within_the_declarator() -> None:
    grow, chooser = chunk("c", C, "grow"), chunk("c", C, "chooser")

    assert grow.params == ["from", "how", "to"]
    assert grow.modifiers == ["static", "inline"]
    assert (grow.visibility, chooser.visibility) == ("private", "public")
    assert chooser.params == ["key"]


def test_a_macro_has_parameters_and_calls() -> None:
    square = chunk("c", C, "SQUARE")

    assert square.params == ["x"]
    assert square.calls == ["times"]


def test_fields_have_their_types_and_an_old_tag_is_used() -> None:
    node = chunk("c", C, "node_t")

    assert [(each.name, each.type) for each in node.types] == [
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
    found = chunk("c", source, "f")

    assert found.mutates == ["p.next.x", "p.x", "q", "p.y[]"]
    assert found.aliases == ["q=p", "q=n"]
    assert (found.branches, found.breaks) == (3, 1)
    assert not found.returns
