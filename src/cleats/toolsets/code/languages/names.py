"""Every language and format by name: what it is called, and which files are written in it.

Owns the ids that files are labelled with and the mode that a format is read in. What a language's
text means is not here.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from cleats.toolsets.code.facts import Mode


class LanguageName(Struct, frozen=True):
    """What a language is called, and how its files give it away."""

    title: str
    aliases: tuple[str, ...] = ()
    """Other names people filter by, in lower case. One alias may belong to several languages."""
    extensions: tuple[str, ...] = ()
    """With the dot, in lower case; the longest that fits decides."""
    filenames: tuple[str, ...] = ()
    """Whole names, in lower case. One that ends in `*` is the beginning of a name."""
    interpreters: tuple[str, ...] = ()
    """What a first line `#!` may name, without a version."""
    mode: Mode = "code"


def _row(
    title: str,
    extensions: str = "",
    aliases: str = "",
    filenames: str = "",
    interpreters: str = "",
    *,
    mode: Mode = "code",
) -> LanguageName:
    return LanguageName(
        title,
        tuple(aliases.split()),
        tuple(f".{extension}" for extension in extensions.split()),
        tuple(filenames.split()),
        tuple(interpreters.split()),
        mode,
    )


NAMES: Final[Mapping[str, LanguageName]] = {
    # Programming languages with a grammar of their own.
    "python": _row(
        "Python",
        "py pyi pyw pyx pxd wsgi",
        "py py3 python3",
        "sconstruct sconscript wscript",
        "python pypy",
    ),
    "javascript": _row(
        "JavaScript", "js mjs cjs jsx es6", "js jsx node ecmascript", "", "node nodejs bun"
    ),
    "typescript": _row("TypeScript", "ts mts cts", "ts", "", "deno ts-node tsx"),
    "tsx": _row("TypeScript with JSX", "tsx", "ts typescript typescriptreact"),
    "go": _row("Go", "go", "golang"),
    "rust": _row("Rust", "rs", "rs"),
    "java": _row("Java", "java"),
    "c": _row("C", "c h", "clike"),
    "cpp": _row(
        "C++",
        "cc cpp cxx c++ hh hpp hxx h++ ipp inl tpp ixx cppm ccm cxxm c++m cu cuh ino",
        "c++ cplusplus cxx clike cuda",
    ),
    "csharp": _row("C#", "cs csx", "c# cs dotnet"),
    "ruby": _row(
        "Ruby",
        "rb rake gemspec podspec ru",
        "rb",
        "rakefile gemfile podfile vagrantfile fastfile brewfile guardfile capfile dangerfile",
        "ruby jruby rake",
    ),
    "php": _row("PHP", "php phtml php3 php4 php5 php7 php8 phps", "", "", "php"),
    "kotlin": _row("Kotlin", "kt kts", "kt kts", "", "kotlin kotlinc"),
    "swift": _row("Swift", "swift", "", "", "swift"),
    "shell": _row(
        "Shell",
        "sh bash zsh ksh bats ebuild",
        "sh bash zsh ksh shellscript",
        ".bashrc .bash_profile .bash_aliases .bash_logout .profile .zshrc .zshenv .zprofile"
        " .zlogin pkgbuild apkbuild configure.ac",
        "sh bash zsh ksh dash ash bats",
    ),
    # Programming languages that are read in blocks of lines.
    "objc": _row("Objective-C", "m mm", "objective-c objectivec clike"),
    "scala": _row("Scala", "scala sc sbt", "", "", "scala"),
    "groovy": _row("Groovy", "groovy gradle gvy", "gradle", "jenkinsfile*", "groovy"),
    "dart": _row("Dart", "dart"),
    "lua": _row("Lua", "lua rockspec", "", ".luacheckrc", "lua luajit"),
    "perl": _row("Perl", "pl pm t pod psgi", "pl", "cpanfile makefile.pl", "perl"),
    "r": _row("R", "r rmd", "rlang", ".rprofile", "rscript"),
    "julia": _row("Julia", "jl", "jl", "", "julia"),
    "haskell": _row("Haskell", "hs lhs cabal", "hs", "", "runhaskell stack"),
    "ocaml": _row("OCaml", "ml mli mll mly", "ml", "dune dune-project", "ocaml"),
    "fsharp": _row("F#", "fs fsi fsx", "f# fs"),
    "vb": _row("Visual Basic", "vb bas vbs", "visualbasic vbnet"),
    "erlang": _row("Erlang", "erl hrl", "erl", "rebar.config", "escript"),
    "elixir": _row("Elixir", "ex exs", "ex", "", "elixir"),
    "clojure": _row("Clojure", "clj cljs cljc edn", "clj"),
    "lisp": _row("Lisp", "lisp lsp cl el", "elisp emacs-lisp", ".emacs", "sbcl emacs"),
    "scheme": _row("Scheme", "scm ss rkt", "racket", "", "guile racket"),
    "zig": _row("Zig", "zig zon"),
    "nim": _row("Nim", "nim nims nimble"),
    "crystal": _row("Crystal", "cr", "", "", "crystal"),
    "d": _row("D", "d di", "dlang"),
    "fortran": _row("Fortran", "f f77 f90 f95 f03 f08 for ftn"),
    "cobol": _row("COBOL", "cob cbl cpy"),
    "pascal": _row("Pascal", "pas pp dpr lpr", "delphi"),
    "ada": _row("Ada", "adb ads"),
    "assembly": _row("Assembly", "s asm nasm", "asm nasm"),
    "powershell": _row("PowerShell", "ps1 psm1 psd1", "ps1 pwsh", "", "pwsh"),
    "batch": _row("Batch file", "bat cmd", "bat cmd"),
    "fish": _row("fish", "fish", "", "", "fish"),
    "awk": _row("AWK", "awk", "", "", "awk gawk mawk"),
    "tcl": _row("Tcl", "tcl tk exp", "", "", "tclsh wish expect"),
    "vim": _row("Vim script", "vim", "viml vimscript", ".vimrc _vimrc"),
    "solidity": _row("Solidity", "sol", "sol"),
    "verilog": _row("Verilog", "v sv svh vh", "systemverilog"),
    "vhdl": _row("VHDL", "vhd vhdl"),
    "glsl": _row("Shading language", "glsl vert frag geom comp hlsl wgsl metal", "hlsl wgsl"),
    "matlab": _row("MATLAB", "matlab mlx"),
    "vala": _row("Vala", "vala vapi"),
    "apex": _row("Apex", "apex trigger"),
    "nix": _row("Nix", "nix"),
    "starlark": _row(
        "Starlark",
        "bzl star bazel",
        "bazel bzl",
        "build build.bazel workspace workspace.bazel buck tiltfile",
    ),
    "cmake": _row("CMake", "cmake", "", "cmakelists.txt"),
    "meson": _row("Meson", "", "", "meson.build meson_options.txt"),
    "hcl": _row("HCL", "tf tfvars hcl nomad", "terraform tf"),
    "bicep": _row("Bicep", "bicep"),
    "puppet": _row("Puppet", "epp", "", "puppetfile"),
    "proto": _row("Protocol Buffers", "proto", "protobuf"),
    "thrift": _row("Thrift", "thrift"),
    "graphql": _row("GraphQL", "graphql gql graphqls", "gql"),
    "prisma": _row("Prisma", "prisma"),
    "avro": _row("Avro IDL", "avdl"),
    "cypher": _row("Cypher", "cypher cql"),
    "rego": _row("Rego", "rego"),
    "dhall": _row("Dhall", "dhall"),
    "cue": _row("CUE", "cue"),
    "jsonnet": _row("Jsonnet", "jsonnet libsonnet"),
    "patch": _row("Patch", "patch diff", "diff"),
    "qml": _row("QML", "qml"),
    "wat": _row("WebAssembly text", "wat wast"),
    # Templates and pages.
    "vue": _row("Vue", "vue"),
    "svelte": _row("Svelte", "svelte"),
    "astro": _row("Astro", "astro"),
    "handlebars": _row("Handlebars", "hbs handlebars", "hbs"),
    "mustache": _row("Mustache", "mustache"),
    "jinja": _row("Jinja", "jinja jinja2 j2", "jinja2 j2"),
    "twig": _row("Twig", "twig"),
    "erb": _row("ERB", "erb rhtml"),
    "ejs": _row("EJS", "ejs"),
    "pug": _row("Pug", "pug jade", "jade"),
    "haml": _row("Haml", "haml slim", "slim"),
    "liquid": _row("Liquid", "liquid"),
    "gotemplate": _row("Go template", "tmpl gotmpl tpl", "tmpl"),
    "razor": _row("Razor", "razor cshtml vbhtml", "cshtml"),
    "jsp": _row("JSP", "jsp jspx tag"),
    "html": _row("HTML", "html htm xhtml shtml", "htm xhtml"),
    "css": _row("CSS", "css pcss postcss"),
    "scss": _row("SCSS", "scss", "css sass"),
    "less": _row("Less", "less", "css"),
    "sass": _row("Sass", "sass styl", "stylus"),
    # Data and configuration.
    "json": _row(
        "JSON",
        "json geojson webmanifest avsc ipynb har tfstate sarif map topojson",
        "",
        ".prettierrc .stylelintrc composer.lock .watchmanconfig .lintstagedrc",
    ),
    "jsonc": _row(
        "JSON with comments",
        "jsonc json5 code-workspace code-snippets sublime-project sublime-settings",
        "json json5",
        "tsconfig*.json jsconfig*.json .eslintrc .eslintrc.json .babelrc .jshintrc .jscsrc"
        " devcontainer.json .swcrc api-extractor.json language-configuration.json",
    ),
    "jsonl": _row("JSON Lines", "jsonl ndjson", "ndjson json", mode="records"),
    "yaml": _row("YAML", "yaml yml", "yml", ".clang-format .clang-tidy .yamllint .gemrc"),
    "toml": _row("TOML", "toml", "", "pipfile gopkg.lock"),
    "ini": _row(
        "INI",
        "ini cfg conf properties prefs editorconfig desktop service socket timer mount target"
        " cnf inf reg env",
        "cfg conf properties systemd dotenv",
        ".editorconfig .gitconfig .gitmodules .npmrc .pylintrc .flake8 .coveragerc .env .env.*"
        " .pypirc .condarc .wgetrc .curlrc",
    ),
    "xml": _row(
        "XML",
        "xml xsd xsl xslt wsdl svg plist pom csproj vbproj fsproj vcxproj proj props targets"
        " nuspec resx xaml axml storyboard xib rss atom dtd ui config jelly sln.xml tld",
        "svg plist xsd xslt",
    ),
    "sql": _row("SQL", "sql ddl dml psql pgsql mysql plsql pls pks pkb tsql", "plsql pgsql"),
    "dockerfile": _row(
        "Dockerfile",
        "dockerfile containerfile",
        "docker containerfile",
        "dockerfile dockerfile.* containerfile containerfile.*",
    ),
    "makefile": _row(
        "Makefile",
        "mk mak make",
        "make mk",
        "makefile gnumakefile makefile.* kbuild bsdmakefile",
        "make",
    ),
    "just": _row("Just", "just", "justfile", "justfile .justfile"),
    "csv": _row("CSV", "csv tsv psv", "tsv"),
    "ignore": _row(
        "Ignore list",
        "",
        "gitignore",
        ".gitignore .gitattributes .dockerignore .npmignore .eslintignore .prettierignore"
        " .cleatsignore .hgignore .helmignore .gcloudignore codeowners .mailmap",
    ),
    "gomod": _row("Go module", "", "", "go.mod go.work"),
    "requirements": _row("Python requirements", "", "", "requirements*.txt constraints*.txt"),
    "nginx": _row("nginx configuration", "nginx", "", "nginx.conf"),
    "caddy": _row("Caddyfile", "", "", "caddyfile"),
    "procfile": _row("Procfile", "", "", "procfile"),
    # Documents.
    "markdown": _row(
        "Markdown", "md markdown mdown mkd mdx qmd livemd", "md mdx mkd", mode="prose"
    ),
    "rst": _row("reStructuredText", "rst rest", "restructuredtext rest", mode="prose"),
    "asciidoc": _row("AsciiDoc", "adoc asciidoc asc", "adoc", mode="prose"),
    "org": _row("Org", "org", "orgmode", mode="prose"),
    "tex": _row("TeX", "tex latex ltx sty cls bib", "latex bibtex", mode="prose"),
    "roff": _row("Manual page", "roff man mdoc troff", "man", mode="prose"),
    "text": _row(
        "Plain text",
        "txt text textile wiki mediawiki rtf srt vtt",
        "txt plain plaintext",
        "readme license licence copying notice authors contributors changelog changes news todo"
        " install maintainers thanks history credits version",
        mode="prose",
    ),
    # Records.
    "log": _row(
        "Log",
        "log out trace stack stacktrace dmp gcov lcov tap err stderr stdout",
        "logs",
        "lcov.info",
        mode="records",
    ),
}
"""By id. The first row that claims a name has it."""

UNKNOWN: Final = "text"
"""The id of text that nothing is known about."""


def _first(pairs: list[tuple[str, str]]) -> dict[str, str]:
    return dict(reversed(pairs))


def _claims(attribute: str) -> list[tuple[str, str]]:
    return [(claim, lang) for lang, name in NAMES.items() for claim in getattr(name, attribute)]


_EXTENSIONS = _first(_claims("extensions"))
_FILENAMES = _first([pair for pair in _claims("filenames") if "*" not in pair[0]])
_PATTERNS = [(*claim.split("*", 1), lang) for claim, lang in _claims("filenames") if "*" in claim]
_INTERPRETERS = _first(_claims("interpreters"))
_PATTERN_HEADS = tuple({head for head, _, _ in _PATTERNS})


def by_path(path: str) -> str:
    """The language that a file's name gives away; empty when it says nothing."""
    name = path.rsplit("/", 1)[-1].lower()
    if (lang := _FILENAMES.get(name)) is not None:
        return lang
    if name.startswith(_PATTERN_HEADS):
        for head, tail, lang in _PATTERNS:
            if name.startswith(head) and name.endswith(tail) and len(name) >= len(head + tail):
                return lang
    dot = name.find(".", 1)
    while dot != -1:
        if (lang := _EXTENSIONS.get(name[dot:])) is not None:
            return lang
        dot = name.find(".", dot + 1)
    return ""


def by_interpreter(command: str) -> str:
    """The language that a program runs, version or none (`python3.12`); empty when unknown."""
    name = command.rsplit("/", 1)[-1].lower()
    return _INTERPRETERS.get(name) or _INTERPRETERS.get(name.rstrip("0123456789.-"), "")


def meant(name: str) -> tuple[str, ...]:
    """The ids that a name means; none when it is unknown. Case and a leading dot are ignored."""
    lowered = name.strip().lower()
    named = [
        lang
        for lang, row in NAMES.items()
        if lowered == lang or lowered in row.aliases or lowered == row.title.lower()
    ]
    if not named and (lang := _EXTENSIONS.get(f".{lowered.removeprefix('.')}")) is not None:
        return (lang,)
    return tuple(named)


def mode_of(lang: str) -> Mode:
    """The mode that files of a language are read in."""
    row = NAMES.get(lang)
    return "code" if row is None else row.mode
