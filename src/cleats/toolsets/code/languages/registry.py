"""The languages that have a table, by id."""

from collections.abc import Mapping
from typing import Final

from cleats.toolsets.code.languages.c import C
from cleats.toolsets.code.languages.cpp import CPP
from cleats.toolsets.code.languages.csharp import CSHARP
from cleats.toolsets.code.languages.go import GO
from cleats.toolsets.code.languages.java import JAVA
from cleats.toolsets.code.languages.javascript import JAVASCRIPT
from cleats.toolsets.code.languages.kotlin import KOTLIN
from cleats.toolsets.code.languages.php import PHP
from cleats.toolsets.code.languages.python import PYTHON
from cleats.toolsets.code.languages.ruby import RUBY
from cleats.toolsets.code.languages.rust import RUST
from cleats.toolsets.code.languages.shell import SHELL
from cleats.toolsets.code.languages.swift import SWIFT
from cleats.toolsets.code.languages.table import Language
from cleats.toolsets.code.languages.typescript import TSX, TYPESCRIPT

LANGUAGES: Final[Mapping[str, Language]] = {
    language.id: language
    for language in (
        PYTHON,
        JAVASCRIPT,
        TYPESCRIPT,
        TSX,
        GO,
        JAVA,
        PHP,
        RUST,
        CSHARP,
        SHELL,
        C,
        CPP,
        RUBY,
        KOTLIN,
        SWIFT,
    )
}
