"""The harder syntax of Ruby."""

from tests.toolsets.code.analysis.languages.test_tables_php_to_typescript import find_chunk, map_kinds, parse_source

RUBY_SOURCE = """
module Shop
  class Desk < Base::Counter
    include Comparable
    attr_reader :name

    # Makes a desk from nothing at all.
    def self.build(a, b = 1, *rest, key:, **kw, &block)
      new(a, opt: b)
    end

    class << self
      def make; end
    end

    def initialize(x)
      @x = x
    end

    def open?; end
    private :open?
    private def inline; end

    protected

    def guarded; end

    public

    def shown = true
  end

  Point = Struct.new(:x) do
    def far; end
  end
end

module Mixin
  def mixed; end
end
"""


def test_ruby_declarations_and_their_kinds() -> None:
    assert map_kinds("ruby", RUBY_SOURCE) == {
        "Shop": "namespace",
        "Shop.Desk": "class",
        "Shop.Desk.build": "method",
        "Shop.Desk.make": "method",
        "Shop.Desk.initialize": "constructor",
        "Shop.Desk.open?": "method",
        "Shop.Desk.inline": "method",
        "Shop.Desk.guarded": "method",
        "Shop.Desk.shown": "method",
        "Shop.Point": "struct",
        "Shop.Point.far": "method",
        "Mixin": "trait",
        "Mixin.mixed": "method",
    }


def test_ruby_visibility_is_said_in_sections_by_name_or_in_front() -> None:
    visibilities = {
        declaration.name.rpartition(".")[2]: declaration.visibility
        for declaration in parse_source("ruby", RUBY_SOURCE).chunks
    }

    assert visibilities["open?"] == visibilities["inline"] == "private"
    assert visibilities["guarded"] == "protected"
    assert visibilities["build"] == visibilities["make"] == visibilities["shown"] == visibilities["far"] == "public"


def test_what_a_ruby_class_includes_is_a_base() -> None:
    desk, build = find_chunk("ruby", RUBY_SOURCE, "Shop.Desk"), find_chunk("ruby", RUBY_SOURCE, "Shop.Desk.build")

    assert desk.bases == ["Base::Counter", "Comparable"]
    assert "name" in desk.uses
    assert build.params == ["a", "b", "rest", "key", "kw", "block"]
    assert build.modifiers == ["static"]
    assert build.doc == "Makes a desk from nothing at all."


def test_blocks_of_iterators_are_loops_and_belong_to_the_method() -> None:
    source = """def f(items)
  items.each do |item|
    next if item.nil?
    note item
  end
  5.times { tick }
  open("x") { |file| read(file) }
  y while z
  total
end
"""
    method = find_chunk("ruby", source, "f")

    assert (method.loops, method.branches, method.continues) == (3, 1, 1)
    assert {"note", "tick", "read", "open"} <= set(method.calls)
    assert method.returns
    assert any(step.targets == ["item"] and step.names == ["items"] for step in method.steps)


def test_what_ruby_raises_and_rescues() -> None:
    source = """def f
  begin
    go
  rescue FooError, BarError => e
    raise
  rescue StandardError
    raise CustomError.new("x")
  end
  raise "oops" unless ready
  raise OrderError, "none"
end
"""
    method = find_chunk("ruby", source, "f")

    assert method.throws == ["CustomError", "RuntimeError", "OrderError"]
    assert method.branches == 3
    assert {"FooError", "BarError"} <= set(method.uses)


def test_ruby_writes_through_setters_indexes_and_patterns() -> None:
    source = """def f(v)
  a, b = b, a
  h[:k] ||= 3
  self.name = v
  case v
  in {name: String => n} then n
  in [first, *others] then first
  end
  `ls #{a}`
end
"""
    method = find_chunk("ruby", source, "f")

    assert method.writes == ["a", "b", "h[]", "self.name", "n", "first", "others"]
    assert method.mutates == ["h[]", "self.name"]
    assert method.aliases == ["self.name=v"]
    assert method.branches == 2
    assert "`" in method.calls


def test_a_method_that_is_called_fail_raises_nothing_where_it_is_declared() -> None:
    body = """
class Files
  def get(path)
    return fail(405, "not allowed") unless path
    raise Missing, path
  end

  def fail(status, text)
    [status, text]
  end
end
"""
    method = find_chunk("ruby", body, "Files.get")

    assert method.calls == ["fail"]
    assert method.throws == ["Missing"]


def test_attributes_among_several_targets_are_written() -> None:
    body = """
def fill(desk)
  self.name, (desk.lamp, rest), *desk.books = desk.read(1)
end
"""
    fill = find_chunk("ruby", body, "fill")

    assert fill.calls == ["desk.read"]
    assert fill.writes == ["self.name", "desk.lamp", "rest", "desk.books"]
    assert fill.mutates == ["self.name", "desk.lamp", "desk.books"]


def test_a_file_is_read_in_a_time_that_grows_with_what_it_raises() -> None:
    """Check that the time is linear; in quadratic time this would take many minutes."""
    source = "".join(f"def m{at}(x)\n  raise Refused if x\nend\n" for at in range(40_000))

    assert find_chunk("ruby", source, "m39999").throws == ["Refused"]
