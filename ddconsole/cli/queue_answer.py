"""What an edit of the queue answers: one document for scripts, a table and a few lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.queue_view import print_items
from ddconsole.cli.report import clean, print_json, tell
from ddconsole.cli.table import duration
from ddconsole.core.documents import added_document
from ddconsole.core.errors import DdconsoleError, DuplicateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ddconsole.core.experiment import Experiment
    from ddconsole.core.queue import Draft, Queue
    from ddconsole.core.spec import Duplicate
    from ddconsole.runner.outlook import Outlook
    from ddconsole.runner.preview import Control, Preview


class Answer:
    """Tells what was done, what would be done, or why nothing was. Each method returns the exit code."""

    def __init__(self, profile: str, view: Outlook, before: Queue, *, as_json: bool, dry_run: bool = False) -> None:
        self._profile = profile
        self._view = view
        self._before = before
        self._as_json = as_json
        self._dry_run = dry_run

    def done(self, previews: Sequence[Preview], after: Queue, verb: str) -> int:
        """Every spec was taken; or would be, in a dry run."""
        would = {item.id for seen in previews for item in seen.items}
        taken = bool(previews) and not self._dry_run
        touched = [item for item in after.items if (item.revision == after.revision if taken else item.id in would)]
        items = self._view.items(after, touched)
        old = {item.id for item in self._before.items}
        added = [item for item in items if item["id"] not in old]
        if self._as_json:
            changed = [item for item in items if item["id"] in old]
            self._print(previews, after.revision, added, {"changed": changed}, notice=after.notice)
            return 0
        print_items(items)
        if not items and verb == "import":
            click.echo("nothing was changed: the queue is as the document says", err=True)
        for line in (*_lines(previews, self._profile), *_closing(after, verb, dry_run=self._dry_run)):
            click.echo(clean(line), err=True)
        return 0

    def refused(self, error: DdconsoleError, previews: Sequence[Preview]) -> int:
        """Nothing was taken."""
        if self._as_json:
            of = error.of if isinstance(error, DuplicateError) else None
            self._print(previews, self._before.revision, (), {"changed": []}, error=error, duplicate_of=of)
            return error.exit_code
        for seen in previews if isinstance(error, DuplicateError) else ():
            for line in _grid(seen):
                click.echo(clean(line), err=True)
        return tell(error, as_json=False)

    def taken_before(self, taken: Sequence[Experiment]) -> int:
        """The same intention was sent before; what it queued then is the answer now."""
        notice = f"this was taken already, as {', '.join(item.id for item in taken)}"
        items = self._view.items(self._before, taken)
        if self._as_json:
            self._print((), self._before.revision, (), {"changed": [], "already": items}, notice=notice)
            return 0
        print_items(items)
        click.echo(notice, err=True)
        return 0

    def _print(
        self,
        previews: Sequence[Preview],
        revision: int,
        added: Iterable[dict[str, Any]],
        more: dict[str, Any],
        *,
        error: DdconsoleError | None = None,
        duplicate_of: str | None = None,
        notice: str = "",
    ) -> None:
        revision = self._before.revision if self._dry_run else revision
        document = added_document(self._profile, revision, added, duplicate_of=duplicate_of, error=error, notice=notice)
        control = _control(previews)
        print_json(
            document
            | {
                "dry_run": self._dry_run,
                "grid": " · ".join(seen.command.grid for seen in previews if seen.command.grid),
                "price_s": round(sum(seen.total_s for seen in previews), 1),
                "boots": sum(seen.boots for seen in previews),
                "notes": list(dict.fromkeys(_notes(previews))),
                "duplicates": [_double(*pair) for seen in previews for pair in _doubled(seen)],
                "control_missing": None if control is None else control.to_json(self._profile),
                "already": [],
            }
            | more
        )


def _doubled(seen: Preview) -> list[tuple[Draft, Duplicate]]:
    drafts = (planned.draft for planned in seen.command.preview)
    return [(draft, double) for draft, double in zip(drafts, seen.doubles, strict=True) if double is not None]


def _double(draft: Draft, double: Duplicate) -> dict[str, Any]:
    config = None if draft.config is None else draft.config.to_json()
    return {"config": config, "duplicate_of": double.id, "state": double.state}


def _control(previews: Sequence[Preview]) -> Control | None:
    """The missing control, unless one of the commands is going to queue it."""
    asked = [draft.config for seen in previews for draft in seen.command.drafts]
    missing = (seen.control for seen in previews if seen.command.drafts and seen.control is not None)
    return next((control for control in missing if control.draft.config not in asked), None)


def _lines(previews: Sequence[Preview], profile: str) -> list[str]:
    """How values came about, what a sweep comes to, what `after` means, what is missing."""
    lines = _notes(previews)
    lines += [line for seen in previews for line in _price(seen)]
    lines += [
        f"this is the same work as {double.id} ({double.state})" for seen in previews for _, double in _doubled(seen)
    ]
    control = _control(previews)
    if control is not None:
        lines += _offer(control, profile)
    return list(dict.fromkeys(lines))


def _notes(previews: Sequence[Preview]) -> list[str]:
    """How values came about, and what else there is to say of a command: what `after` means."""
    derived = [note for seen in previews for planned in seen.command.preview for note in planned.notes]
    return derived + [note for seen in previews for note in seen.command.notes]


def _price(seen: Preview) -> list[str]:
    """The size and price of several experiments; one has its time in the table."""
    if seen.changes_price:
        return [f"{duration(abs(seen.more_s))} {'more' if seen.more_s > 0 else 'less'} than before"]
    if not seen.command.drafts or len(seen.items) < 2:
        return []
    starts = "start" if seen.boots == 1 else "starts"
    text = f"{len(seen.items)} experiments, {duration(seen.total_s)}, {seen.boots} {starts} of the engine"
    return [f"{seen.command.grid}: {text}" if seen.command.grid else text]


def _grid(seen: Preview) -> list[str]:
    """Each config of a spec with the same work that is there already."""
    if len(seen.doubles) < 2:
        return []
    lines = [f"{seen.command.grid}:" if seen.command.grid else "it asks for:"]
    for planned, double in zip(seen.command.preview, seen.doubles, strict=True):
        label = planned.draft.config.label() if planned.draft.config else planned.draft.note
        lines.append(f"  {label}" + (f"  is {double.id} ({double.state})" if double else ""))
    return lines


def _offer(control: Control, profile: str) -> list[str]:
    assert control.draft.config is not None
    guess = " (trained_block_size is not in the profile, so its default is taken)" if control.assumed else ""
    return [
        f"no control: {control.draft.config.label()}, which this tree has to beat, was never measured here{guess}",
        f"  → `ddconsole queue {profile} {control.spec}` queues it, {duration(control.seconds)}; "
        "--with-control does so at once",
    ]


def _closing(after: Queue, verb: str, *, dry_run: bool) -> list[str]:
    lines = [after.notice] if after.notice else []
    if verb in ("pause", "start"):
        lines.append("the queue is paused" if after.paused else "the queue goes on")
    return [*lines, "nothing was changed: this was a dry run"] if dry_run else lines
