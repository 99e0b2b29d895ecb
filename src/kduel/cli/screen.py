"""Drawing in place with rich, so that a resize of the terminal leaves all that was printed where it is.

The cursor rests at the first line of what is drawn, not below its last one. A terminal that wraps its lines anew when it
becomes narrower moves the cursor with the line on which it rests; so whatever the lines below have become, erasing from
the cursor on removes them and nothing else. rich counts the lines above the cursor instead, which holds only as long as
no terminal wraps them. What a terminal itself moves into its scrollback in that moment is out of reach: the first of the
lines, where nothing else is above them (seen with tmux 3.3).
"""

from collections.abc import Callable

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderResult
from rich.live import Live
from rich.live_render import LiveRender
from rich.segment import ControlType, Segment
from rich.text import Text

ERASE_BELOW = "\r\x1b[J"
"""To the first column, and erase from there to the end of the screen (ECMA-48: CR, ED 0)."""
WRAP_OFF, WRAP_ON = "\x1b[?7l", "\x1b[?7h"
"""DECAWM: off while a frame is drawn, as the terminal may have become narrower since its size was read."""

Frame = Callable[[int, int], list[list[tuple[str, str]]]]
"""From columns and rows to a screen's lines: pieces of text, each with rich's name of its style."""


def control(text: str) -> Segment:
    """Codes for the terminal, which take no room."""
    return Segment(text, None, [(ControlType.CARRIAGE_RETURN,)])


class Screen:
    """Asks for the frame each time that it is drawn."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.frame(*console.size):
            yield Text.assemble(*line, no_wrap=True, overflow="crop", end="\n")


class Erasure:
    """Removes what is drawn."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield control(ERASE_BELOW)


class FromTop(LiveRender):
    """Draws its lines and goes back to the first of them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield control(WRAP_OFF)
        yield from super().__rich_console__(console, options)
        up = f"\x1b[{self.last_render_height - 1}A" if self.last_render_height > 1 else ""
        yield control(f"{WRAP_ON}\r{up}")


class InPlace(Live):
    """rich's `Live`, transient, with the cursor at the top of what it draws."""

    def __init__(self, drawn: RenderableType, console: Console, per_second: float) -> None:
        super().__init__(
            drawn, console=console, refresh_per_second=per_second, transient=True, redirect_stdout=False,
            vertical_overflow="crop",
        )  # fmt: skip
        self._live_render = FromTop(drawn, vertical_overflow="crop")

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Print in place of what is drawn, which follows."""
        if not self.console.is_interactive:
            return renderables
        with self._lock:
            return [Erasure(), *renderables, self._live_render]

    def stop(self) -> None:
        """Remove what is drawn; the next output begins where it was."""
        with self._lock:
            if not self._started:
                return
            self._started = False
            self.console.clear_live()
            if self._refresh_thread is not None:
                self._refresh_thread.stop()
                self._refresh_thread = None
            self._disable_redirect_io()
            self.console.pop_render_hook()
            self.console.print(Erasure(), end="")
            self.console.show_cursor(True)
