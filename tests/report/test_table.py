from dmlsplit.report.table import Table


def test_columns_are_aligned_and_the_last_one_wrapped():
    table = Table(
        "Title", ("A", "Long", "Words"), [("a", "b", "one two three"), ("aaaa", "b", ""), ("a", "b", "x" * 20)]
    )
    assert table.plain(width=28).splitlines() == [
        "Title",
        "A     Long  Words",
        "a     b     one two three",
        "aaaa  b",
        "a     b     " + "x" * 20,
    ]
    assert table.plain(width=12 + 16).count("\n") == 5
    narrow = Table("", ("A",), [("one two three four five six",)]).plain(width=16)
    assert narrow.splitlines() == ["A", "one two three", "four five six"]
