"""Colours of `neuro` blocks, from the TextMate grammar of the editors: what is a word of the language is said in one place.

A test of the repository holds that grammar against `grammar/neuro.pest`.
"""

import json
import re
from pathlib import Path

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

GRAMMAR = Path(__file__).parents[2] / "editors" / "vscode" / "syntaxes" / "neuro.tmLanguage.json"

#: Scopes of TextMate, the longest beginning that fits, and what Pygments calls them.
TOKENS = {
    "comment.line.documentation": String.Doc,
    "comment": Comment,
    "string": String,
    "keyword.operator.word": Operator.Word,
    "keyword.operator": Operator,
    "keyword.control.import": Keyword.Namespace,
    "keyword": Keyword,
    "storage.type": Keyword.Declaration,
    "entity.name.namespace": Name.Namespace,
    "entity.name.type": Name.Class,
    "entity.name.function.call": Name.Function,
    "entity.name.function": Name.Function,
    "variable.other.constant": Name.Constant,
    "variable.other.definition": Name.Variable,
    "variable.other.property": Name.Attribute,
    "variable.language": Name.Builtin.Pseudo,
    "constant.numeric": Number,
    "constant.language": Keyword.Constant,
    "support.type.unit": Keyword.Type,
    "punctuation": Punctuation,
}


def token(scope):
    fits = [name for name in TOKENS if scope == name or scope.startswith(name + ".")]
    return TOKENS[max(fits, key=len)] if fits else Text


def groups(regex, captures):
    """The regex with every character in a group, as `bygroups` needs it: what no capture names is text."""
    count = re.compile(regex).groups
    return [token(captures[str(n)]["name"]) if str(n) in captures else Text for n in range(1, count + 1)]


def captured(regex, captures):
    """Colours the captures of a match, and leaves what is between them as it is."""
    kinds = groups(regex, captures)

    def callback(lexer, match, context=None):
        at = match.start()
        for number, kind in enumerate(kinds, 1):
            begin, end = match.span(number)
            if begin < 0:
                continue
            if at < begin:
                yield at, Text, lexer_text(match, at, begin)
            yield begin, kind, match.group(number)
            at = end
        if at < match.end():
            yield at, Text, lexer_text(match, at, match.end())

    return callback


def lexer_text(match, begin, end):
    return match.string[begin:end]


def rules():
    grammar = json.loads(GRAMMAR.read_text())
    out = []

    def add(pattern):
        if "include" in pattern:
            add(grammar["repository"][pattern["include"].removeprefix("#")])
        elif "begin" in pattern:
            out.append((rf"(?s){pattern['begin']}.*?{pattern['end']}", token(pattern["name"])))
        elif "match" in pattern:
            regex = pattern["match"]
            kind = captured(regex, pattern["captures"]) if "captures" in pattern else token(pattern["name"])
            out.append((regex, kind))
        else:
            for inner in pattern["patterns"]:
                add(inner)

    add(grammar)
    return [*out, (r"[A-Za-z_][A-Za-z_0-9]*", Name), (r"[{}()\[\],;:.]", Punctuation), (r"\s+", Text.Whitespace), (r".", Text)]


class NeuroLexer(RegexLexer):
    name = "neuro"
    aliases = ["neuro"]
    filenames = ["*.neuro"]
    tokens = {"root": rules()}


class FragmentLexer(NeuroLexer):
    """The inside of a block, as grammar/README.md shows some."""

    name = "neuro-fragment"
    aliases = ["neuro-fragment"]
    filenames = []


def setup(app):
    app.add_lexer("neuro", NeuroLexer)
    app.add_lexer("neuro-fragment", FragmentLexer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
