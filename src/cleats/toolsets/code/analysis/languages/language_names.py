"""The names of every language and format, and the files that are written in it.

Owns the ids that files are labelled with, and the mode that a format is read in. The syntax of
languages is defined elsewhere.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from cleats.toolsets.code.analysis.facts import Mode


class LanguageName(Struct, frozen=True):
    """The names of a language, and the file names that identify it."""

    title: str
    aliases: tuple[str, ...] = ()
    """Other names to filter by, in lower case. One alias may belong to several languages."""
    extensions: tuple[str, ...] = ()
    """With the dot, in lower case; the longest match wins."""
    filenames: tuple[str, ...] = ()
    """Full names, in lower case. A name that ends in `*` is a prefix."""
    interpreters: tuple[str, ...] = ()
    """Interpreters that a `#!` line may name, without a version."""
    mode: Mode = "code"


def _make_name(
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


LANGUAGE_NAMES: Final[Mapping[str, LanguageName]] = {
    # Programming languages with a grammar of their own.
    "python": _make_name(
        "Python", "py pyi pyw pyx pxd wsgi", "py py3 python3", "sconstruct sconscript wscript", "python pypy"
    ),
    "javascript": _make_name("JavaScript", "js mjs cjs jsx es6", "js jsx node ecmascript", "", "node nodejs bun"),
    "typescript": _make_name("TypeScript", "ts mts cts", "ts", "", "deno ts-node tsx"),
    "tsx": _make_name("TypeScript with JSX", "tsx", "ts typescript typescriptreact"),
    "go": _make_name("Go", "go", "golang"),
    "rust": _make_name("Rust", "rs", "rs"),
    "java": _make_name("Java", "java"),
    "c": _make_name("C", "c h", "clike"),
    "cpp": _make_name(
        "C++",
        "cc cpp cxx c++ hh hpp hxx h++ ipp inl tpp ixx cppm ccm cxxm c++m cu cuh ino",
        "c++ cplusplus cxx clike cuda",
    ),
    "csharp": _make_name("C#", "cs csx", "c# cs dotnet"),
    "ruby": _make_name(
        "Ruby",
        "rb rake gemspec podspec ru",
        "rb",
        "rakefile gemfile podfile vagrantfile fastfile brewfile guardfile capfile dangerfile",
        "ruby jruby rake",
    ),
    "php": _make_name("PHP", "php phtml php3 php4 php5 php7 php8 phps", "", "", "php"),
    "kotlin": _make_name("Kotlin", "kt kts", "kt kts", "", "kotlin kotlinc"),
    "swift": _make_name("Swift", "swift", "", "", "swift"),
    "shell": _make_name(
        "Shell",
        "sh bash zsh ksh bats ebuild",
        "sh bash zsh ksh shellscript",
        ".bashrc .bash_profile .bash_aliases .bash_logout .profile .zshrc .zshenv .zprofile"
        " .zlogin pkgbuild apkbuild configure.ac",
        "sh bash zsh ksh dash ash bats",
    ),
    # Programming languages that are read in blocks of lines.
    "objc": _make_name("Objective-C", "m mm", "objective-c objectivec clike"),
    "scala": _make_name("Scala", "scala sc sbt", "", "", "scala"),
    "groovy": _make_name("Groovy", "groovy gradle gvy", "gradle", "jenkinsfile*", "groovy"),
    "dart": _make_name("Dart", "dart"),
    "lua": _make_name("Lua", "lua rockspec", "", ".luacheckrc", "lua luajit"),
    "perl": _make_name("Perl", "pl pm t pod psgi", "pl", "cpanfile makefile.pl", "perl"),
    "r": _make_name("R", "r rmd", "rlang", ".rprofile", "rscript"),
    "julia": _make_name("Julia", "jl", "jl", "", "julia"),
    "haskell": _make_name("Haskell", "hs lhs cabal", "hs", "", "runhaskell stack"),
    "ocaml": _make_name("OCaml", "ml mli mll mly", "ml", "dune dune-project", "ocaml"),
    "fsharp": _make_name("F#", "fs fsi fsx", "f# fs"),
    "vb": _make_name("Visual Basic", "vb bas vbs", "visualbasic vbnet"),
    "erlang": _make_name("Erlang", "erl hrl", "erl", "rebar.config", "escript"),
    "elixir": _make_name("Elixir", "ex exs", "ex", "", "elixir"),
    "clojure": _make_name("Clojure", "clj cljs cljc edn", "clj"),
    "lisp": _make_name("Lisp", "lisp lsp cl el", "elisp emacs-lisp", ".emacs", "sbcl emacs"),
    "scheme": _make_name("Scheme", "scm ss rkt", "racket", "", "guile racket"),
    "zig": _make_name("Zig", "zig zon"),
    "nim": _make_name("Nim", "nim nims nimble"),
    "crystal": _make_name("Crystal", "cr", "", "", "crystal"),
    "d": _make_name("D", "d di", "dlang"),
    "fortran": _make_name("Fortran", "f f77 f90 f95 f03 f08 for ftn"),
    "cobol": _make_name("COBOL", "cob cbl cpy"),
    "pascal": _make_name("Pascal", "pas pp dpr lpr", "delphi"),
    "ada": _make_name("Ada", "adb ads"),
    "assembly": _make_name("Assembly", "s asm nasm", "asm nasm"),
    "powershell": _make_name("PowerShell", "ps1 psm1 psd1", "ps1 pwsh", "", "pwsh"),
    "batch": _make_name("Batch file", "bat cmd", "bat cmd"),
    "fish": _make_name("fish", "fish", "", "", "fish"),
    "awk": _make_name("AWK", "awk", "", "", "awk gawk mawk"),
    "tcl": _make_name("Tcl", "tcl tk exp", "", "", "tclsh wish expect"),
    "vim": _make_name("Vim script", "vim", "viml vimscript", ".vimrc _vimrc"),
    "solidity": _make_name("Solidity", "sol", "sol"),
    "verilog": _make_name("Verilog", "v sv svh vh", "systemverilog"),
    "vhdl": _make_name("VHDL", "vhd vhdl"),
    "glsl": _make_name("Shading language", "glsl vert frag geom comp hlsl wgsl metal", "hlsl wgsl"),
    "matlab": _make_name("MATLAB", "matlab mlx"),
    "vala": _make_name("Vala", "vala vapi"),
    "apex": _make_name("Apex", "apex trigger"),
    "nix": _make_name("Nix", "nix"),
    "starlark": _make_name(
        "Starlark", "bzl star bazel", "bazel bzl", "build build.bazel workspace workspace.bazel buck tiltfile"
    ),
    "cmake": _make_name("CMake", "cmake", "", "cmakelists.txt"),
    "meson": _make_name("Meson", "", "", "meson.build meson_options.txt"),
    "hcl": _make_name("HCL", "tf tfvars hcl nomad", "terraform tf"),
    "bicep": _make_name("Bicep", "bicep"),
    "puppet": _make_name("Puppet", "epp", "", "puppetfile"),
    "proto": _make_name("Protocol Buffers", "proto", "protobuf"),
    "thrift": _make_name("Thrift", "thrift"),
    "graphql": _make_name("GraphQL", "graphql gql graphqls", "gql"),
    "prisma": _make_name("Prisma", "prisma"),
    "avro": _make_name("Avro IDL", "avdl"),
    "cypher": _make_name("Cypher", "cypher cql"),
    "rego": _make_name("Rego", "rego"),
    "dhall": _make_name("Dhall", "dhall"),
    "cue": _make_name("CUE", "cue"),
    "jsonnet": _make_name("Jsonnet", "jsonnet libsonnet"),
    "patch": _make_name("Patch", "patch diff", "diff"),
    "qml": _make_name("QML", "qml"),
    "wat": _make_name("WebAssembly text", "wat wast"),
    # Templates and pages.
    "vue": _make_name("Vue", "vue"),
    "svelte": _make_name("Svelte", "svelte"),
    "astro": _make_name("Astro", "astro"),
    "handlebars": _make_name("Handlebars", "hbs handlebars", "hbs"),
    "mustache": _make_name("Mustache", "mustache"),
    "jinja": _make_name("Jinja", "jinja jinja2 j2", "jinja2 j2"),
    "twig": _make_name("Twig", "twig"),
    "erb": _make_name("ERB", "erb rhtml"),
    "ejs": _make_name("EJS", "ejs"),
    "pug": _make_name("Pug", "pug jade", "jade"),
    "haml": _make_name("Haml", "haml slim", "slim"),
    "liquid": _make_name("Liquid", "liquid"),
    "gotemplate": _make_name("Go template", "tmpl gotmpl tpl", "tmpl"),
    "razor": _make_name("Razor", "razor cshtml vbhtml", "cshtml"),
    "jsp": _make_name("JSP", "jsp jspx tag"),
    "html": _make_name("HTML", "html htm xhtml shtml", "htm xhtml"),
    "css": _make_name("CSS", "css pcss postcss"),
    "scss": _make_name("SCSS", "scss", "css sass"),
    "less": _make_name("Less", "less", "css"),
    "sass": _make_name("Sass", "sass styl", "stylus"),
    # Data and configuration.
    "json": _make_name(
        "JSON",
        "json geojson webmanifest avsc ipynb har tfstate sarif map topojson",
        "",
        ".prettierrc .stylelintrc composer.lock .watchmanconfig .lintstagedrc",
    ),
    "jsonc": _make_name(
        "JSON with comments",
        "jsonc json5 code-workspace code-snippets sublime-project sublime-settings",
        "json json5",
        "tsconfig*.json jsconfig*.json .eslintrc .eslintrc.json .babelrc .jshintrc .jscsrc"
        " devcontainer.json .swcrc api-extractor.json language-configuration.json",
    ),
    "jsonl": _make_name("JSON Lines", "jsonl ndjson", "ndjson json", mode="records"),
    "yaml": _make_name("YAML", "yaml yml", "yml", ".clang-format .clang-tidy .yamllint .gemrc"),
    "toml": _make_name("TOML", "toml", "", "pipfile gopkg.lock"),
    "ini": _make_name(
        "INI",
        "ini cfg conf properties prefs editorconfig desktop service socket timer mount target cnf inf reg env",
        "cfg conf properties systemd dotenv",
        ".editorconfig .gitconfig .gitmodules .npmrc .pylintrc .flake8 .coveragerc .env .env.*"
        " .pypirc .condarc .wgetrc .curlrc",
    ),
    "xml": _make_name(
        "XML",
        "xml xsd xsl xslt wsdl svg plist pom csproj vbproj fsproj vcxproj proj props targets"
        " nuspec resx xaml axml storyboard xib rss atom dtd ui config jelly sln.xml tld",
        "svg plist xsd xslt",
    ),
    "sql": _make_name("SQL", "sql ddl dml psql pgsql mysql plsql pls pks pkb tsql", "plsql pgsql"),
    "dockerfile": _make_name(
        "Dockerfile",
        "dockerfile containerfile",
        "docker containerfile",
        "dockerfile dockerfile.* containerfile containerfile.*",
    ),
    "makefile": _make_name(
        "Makefile", "mk mak make", "make mk", "makefile gnumakefile makefile.* kbuild bsdmakefile", "make"
    ),
    "just": _make_name("Just", "just", "justfile", "justfile .justfile"),
    "csv": _make_name("CSV", "csv tsv psv", "tsv"),
    "ignore": _make_name(
        "Ignore list",
        "",
        "gitignore",
        ".gitignore .gitattributes .dockerignore .npmignore .eslintignore .prettierignore"
        " .cleatsignore .hgignore .helmignore .gcloudignore codeowners .mailmap",
    ),
    "gomod": _make_name("Go module", "", "", "go.mod go.work"),
    "requirements": _make_name("Python requirements", "", "", "requirements*.txt constraints*.txt"),
    "nginx": _make_name("nginx configuration", "nginx", "", "nginx.conf"),
    "caddy": _make_name("Caddyfile", "", "", "caddyfile"),
    "procfile": _make_name("Procfile", "", "", "procfile"),
    # Documents.
    "markdown": _make_name("Markdown", "md markdown mdown mkd mdx qmd livemd", "md mdx mkd", mode="prose"),
    "rst": _make_name("reStructuredText", "rst rest", "restructuredtext rest", mode="prose"),
    "asciidoc": _make_name("AsciiDoc", "adoc asciidoc asc", "adoc", mode="prose"),
    "org": _make_name("Org", "org", "orgmode", mode="prose"),
    "tex": _make_name("TeX", "tex latex ltx sty cls bib", "latex bibtex", mode="prose"),
    "roff": _make_name("Manual page", "roff man mdoc troff", "man", mode="prose"),
    "text": _make_name(
        "Plain text",
        "txt text textile wiki mediawiki rtf srt vtt",
        "txt plain plaintext",
        "readme license licence copying notice authors contributors changelog changes news todo"
        " install maintainers thanks history credits version",
        mode="prose",
    ),
    # Records.
    "log": _make_name(
        "Log", "log out trace stack stacktrace dmp gcov lcov tap err stderr stdout", "logs", "lcov.info", mode="records"
    ),
}
"""All languages by id. The first one that claims a name gets it."""

UNKNOWN_LANGUAGE: Final = "text"
"""The id of text in no known language."""


def _index_by_claim(pairs: list[tuple[str, str]]) -> dict[str, str]:
    return dict(reversed(pairs))


def _list_claims(attribute: str) -> list[tuple[str, str]]:
    return [(claim, lang) for lang, name in LANGUAGE_NAMES.items() for claim in getattr(name, attribute)]


_LANGUAGES_BY_EXTENSION = _index_by_claim(_list_claims("extensions"))
_LANGUAGES_BY_FILENAME = _index_by_claim([pair for pair in _list_claims("filenames") if "*" not in pair[0]])
_FILENAME_PATTERNS = [(*claim.split("*", 1), lang) for claim, lang in _list_claims("filenames") if "*" in claim]
_LANGUAGES_BY_INTERPRETER = _index_by_claim(_list_claims("interpreters"))
_PATTERN_PREFIXES = tuple({head for head, _, _ in _FILENAME_PATTERNS})


def detect_language_by_path(path: str) -> str:
    """Return the language that a file name indicates; empty if it indicates none."""
    name = path.rsplit("/", 1)[-1].lower()
    if (lang := _LANGUAGES_BY_FILENAME.get(name)) is not None:
        return lang
    if name.startswith(_PATTERN_PREFIXES):
        for prefix, suffix, lang in _FILENAME_PATTERNS:
            if name.startswith(prefix) and name.endswith(suffix) and len(name) >= len(prefix + suffix):
                return lang
    dot = name.find(".", 1)
    while dot != -1:
        if (lang := _LANGUAGES_BY_EXTENSION.get(name[dot:])) is not None:
            return lang
        dot = name.find(".", dot + 1)
    return ""


def detect_language_by_interpreter(command: str) -> str:
    """Return the language of an interpreter such as `python3.12`; empty if unknown."""
    name = command.rsplit("/", 1)[-1].lower()
    return _LANGUAGES_BY_INTERPRETER.get(name) or _LANGUAGES_BY_INTERPRETER.get(name.rstrip("0123456789.-"), "")


def resolve_language_ids(name: str) -> tuple[str, ...]:
    """Return the language ids for a name; empty if unknown. Case and a leading dot are ignored."""
    lowered = name.strip().lower()
    language_ids = [
        lang
        for lang, row in LANGUAGE_NAMES.items()
        if lowered == lang or lowered in row.aliases or lowered == row.title.lower()
    ]
    if not language_ids and (lang := _LANGUAGES_BY_EXTENSION.get(f".{lowered.removeprefix('.')}")) is not None:
        return (lang,)
    return tuple(language_ids)


def get_language_mode(lang: str) -> Mode:
    """Return the mode that files of a language are read in."""
    row = LANGUAGE_NAMES.get(lang)
    return "code" if row is None else row.mode
