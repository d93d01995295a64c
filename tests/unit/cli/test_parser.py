"""The parser follows pflag: what is a value, what is a switch, what is refused and in which words."""

from __future__ import annotations

import pytest

from hcp.cli.engine import values
from hcp.cli.engine.command import Arg, Call, Command, Flag, UsageError, parse

COMMAND = Command(
    "do it",
    "Does it",
    handler="nowhere:run",
    args=(Arg("NAME", "a name", optional=True),),
    flags=(
        Flag("text", "string", "default", "text", short="t"),
        Flag("switch", "bool", False, "a switch", short="s"),
        Flag("on", "bool", True, "a switch that is on"),
        Flag("number", "int32", 7, "a number"),
        Flag("unsigned", "uint32", 2, "a number"),
        Flag("time", "duration", 0, "a time"),
        Flag("array", "stringArray", ("a",), "an array"),
        Flag("slice", "stringSlice", ("a",), "a slice"),
        Flag("map", "stringToString", None, "a map"),
        Flag("verbose", "count", 0, "more", short="v"),
        Flag("mode", "string", "Fast", "a mode", choices=("Fast", "Slow"), ignore_case=True),
        Flag("dev", "string", "", "for developers", only="hypershift"),
        Flag("policy", "string", "many", "differs", hypershift="one"),
    ),
    exclusive=(("text", "number"),),
)


def call(*words: str, prog: str = "hcp") -> Call:
    return parse(prog, COMMAND, words)


def refusal(*words: str, prog: str = "hcp") -> str:
    with pytest.raises(UsageError) as caught:
        call(*words, prog=prog)
    return f"{caught.value} | {caught.value.hint}"


def test_both_ways_to_give_a_value() -> None:
    assert call("--text", "a").text("text") == "a"
    assert call("--text=a=b").text("text") == "a=b"
    assert call("--text=").text("text") == ""
    assert call("--text", "--switch").text("text") == "--switch"
    assert call("-t", "a").text("text") == call("-ta").text("text") == call("-t=a").text("text") == "a"


def test_last_use_of_a_plain_flag_wins() -> None:
    assert call("--text=a", "--text=b").text("text") == "b"


def test_switches() -> None:
    assert call("--switch").switch("switch")
    assert call("-s").switch("switch")
    assert not call("--on=false").switch("on")
    assert call("--switch=T").switch("switch")
    assert "true or false" in refusal("--switch=maybe")


def test_a_separated_truth_value_is_refused_with_the_right_spelling() -> None:
    text = refusal("x", "--on", "false")
    assert 'unexpected argument "false"' in text
    assert "--on=false" in text


def test_shorthands_may_be_joined() -> None:
    joined = call("-svvt", "x")
    assert joined.switch("switch")
    assert joined.number("verbose") == 2
    assert joined.text("text") == "x"
    assert "unknown shorthand flag: 'x' in -sx" in refusal("-sx")
    assert "flag needs an argument: 't' in -t" in refusal("-t")


@pytest.mark.parametrize(
    ("text", "value"),
    [("0x10", 16), ("010", 8), ("0b11", 3), ("0o17", 15), ("-5", -5), ("+5", 5), ("1_000", 1000), ("0", 0)],
)
def test_numbers_as_go_reads_them(text: str, value: int) -> None:
    assert call(f"--number={text}").number("number") == value


@pytest.mark.parametrize("text", ["", "1.5", "a", "2147483648", "-2147483649", "09", "1 ", "٣", "0x", "--1"])
def test_numbers_that_are_none(text: str) -> None:
    refused = refusal(f"--number={text}")
    assert f'invalid argument "{text}" for "--number" flag' in refused
    assert "whole number" in refused


def test_unsigned_numbers_have_no_sign() -> None:
    assert call("--unsigned=4294967295").number("unsigned") == 4294967295
    assert "from 0" in refusal("--unsigned=-1")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", "0s"),
        ("5m", "5m0s"),
        ("1h30m", "1h30m0s"),
        ("300ms", "300ms"),
        ("1.5s", "1.5s"),
        ("90s", "1m30s"),
        ("1us", "1µs"),
        ("26h", "26h0m0s"),
        ("1h1ns", "1h0m0.000000001s"),
    ],
)
def test_durations_print_as_in_go(text: str, printed: str) -> None:
    assert call(f"--time={text}").duration("time") == printed


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "1d", ".", "1..5s", "5m3", "999999999h", "-2m"])
def test_durations_that_are_none(text: str) -> None:
    assert f'invalid argument "{text}" for "--time" flag' in refusal(f"--time={text}")


def test_negative_durations_can_be_written() -> None:
    assert values.format_duration(values.duration("-2m")) == "-2m0s"


def test_arrays_take_one_element_each_and_replace_the_default() -> None:
    assert call().items("array") == ["a"]
    assert call("--array=x,y", "--array", "z").items("array") == ["x,y", "z"]


def test_slices_split_at_commas() -> None:
    assert call("--slice=x,y", "--slice=z").items("slice") == ["x", "y", "z"]
    assert call('--slice="x,1",y').items("slice") == ["x,1", "y"]
    assert call("--slice=").items("slice") == []
    assert "double quote" in refusal('--slice=a"b')


def test_maps() -> None:
    assert call("--map=a=1,b=2", "--map=b=3").pairs("map") == {"a": "1", "b": "3"}
    assert call("--map=a=1,b").pairs("map") == {"a": "1,b"}
    assert call('--map="a=1"').pairs("map") == {"a": "1"}
    assert "must be formatted as key=value" in refusal("--map=a")
    assert "must be formatted as key=value" in refusal("--map=a=1,b=2,c")


def test_choices_are_named_when_none_fits() -> None:
    assert call("--mode=SLOW").text("mode") == "Slow"
    refused = refusal("--mode=quick")
    assert 'invalid argument "quick" for "--mode" flag' in refused
    assert "Fast, Slow" in refused


def test_double_dash_ends_the_flags() -> None:
    assert call("--", "--text").args == ["--text"]
    assert call("-").args == ["-"]


def test_unknown_flags_name_the_close_one() -> None:
    assert "unknown flag: --txet" in refusal("--txet=1")
    assert "did you mean --text" in refusal("--txet=1")
    assert "bad flag syntax: ---x" in refusal("---x")
    assert "flag needs an argument: --text" in refusal("--text")


def test_flags_and_defaults_of_the_other_name() -> None:
    assert call("--dev=x", prog="hypershift").text("dev") == "x"
    assert "exists under the name hypershift" in refusal("--dev=x")
    assert call().text("policy") == "many"
    assert call(prog="hypershift").text("policy") == "one"


def test_exclusive_flags() -> None:
    refused = refusal("--text=a", "--number=1")
    assert "if any flags in the group [text number] are set none of the others can be; [number text]" in refused


def test_required_flags_and_arguments() -> None:
    strict = Command("x", "x", handler="n:n", args=(Arg("NAME", "a name"),), flags=(Flag("need", required=True),))
    with pytest.raises(UsageError, match='required flag\\(s\\) "need" not set'):
        parse("hcp", strict, ["a"])
    with pytest.raises(UsageError, match="missing argument NAME"):
        parse("hcp", strict, ["--need=1"])
    with pytest.raises(UsageError, match='unexpected argument "b"'):
        parse("hcp", strict, ["--need=1", "a", "b"])


def test_changed_tells_what_was_typed() -> None:
    typed = call("--number=7")
    assert typed.changed("number")
    assert not typed.changed("text")
