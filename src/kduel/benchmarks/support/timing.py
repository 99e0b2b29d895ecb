"""Commands whose only figure is how long they take."""

from kduel.benchmarks.support.reading import check_positive, find_whole


def measure_time(lines: str) -> str:
    """Shell lines with their wall time, printed in nanoseconds; date(1) of coreutils takes a millisecond or two of it."""
    return f'kduel_from=$(date +%s%N)\n{lines}echo "kduel: $(($(date +%s%N) - kduel_from)) ns"\n'


def read_seconds(text: str) -> float:
    """Seconds, from what `measure_time` printed. Raises ParseError."""
    return check_positive(find_whole(r"kduel: (\S+) ns", text, "the time taken") / 1e9, "the time taken")
