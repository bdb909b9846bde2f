"""The folder of a run: the only package that knows which files it holds.

    OUT/<benchmark>/.features/  of a frozen backbone, while heads are trained on them
    OUT/<benchmark>/.judged/    what judging made of runs: cells, and digests of files
    OUT/<benchmark>/<hash>/
        spec.json           what the run is
        environment.json    what it runs on: versions, device, command
        lock                held by the process that works on the run
        owner.txt           the name of that process, to notice locks without effect
        log.txt             all output of this process
        log.jsonl           one line for each epoch
        items.json          the training items that a rule chose
        checkpoint.pt       the last checkpoint, and checkpoint.previous.pt before it
        predictions/        the predictions of each split
        losses.json         how often its process, or its machine, was lost
        failed.json         why the last attempt failed
        pruned.json         why a search stopped it before its end
        done.json           written last: the run is finished, and what it cost

Two runs of one spec on one machine, with as many threads (done.json has the number),
write predictions that are equal to the last bit.
What differs between them, such as the time that they took, is in the other files.

Files are written whole or not at all.
"""

from qualms.runs._environment import (
    check_place,
    check_writable,
    commit,
    environment,
)
from qualms.runs._files import (
    JudgedFile,
    checkpoint_paths,
    done_path,
    epochs_path,
    is_run_name,
    items_path,
    judged_cells,
    judged_files,
    lock_path,
    log_path,
    predictions_folder,
    run_folder,
    shared_features,
    sibling,
    split_stem,
)
from qualms.runs._predictions import (
    is_done,
    is_stored,
    mismatch,
    remade,
    stored,
    was_finished,
)
from qualms.runs._progress import (
    RunProgress,
    RunState,
    last_change,
    read_progress,
    read_state,
)
from qualms.runs._record import (
    PACE,
    RunCosts,
    RunFolderError,
    RunLosses,
    check_signed,
    count_loss,
    describe,
    mark_done,
    mark_failed,
    mark_pruned,
    mend_spec,
    owner_path,
    read_costs,
    read_losses,
    sign,
    tidy,
    why_failed,
    why_pruned,
)

__all__ = [
    "PACE",
    "JudgedFile",
    "RunCosts",
    "RunFolderError",
    "RunLosses",
    "RunProgress",
    "RunState",
    "check_place",
    "check_signed",
    "check_writable",
    "checkpoint_paths",
    "commit",
    "count_loss",
    "describe",
    "done_path",
    "environment",
    "epochs_path",
    "is_done",
    "is_run_name",
    "is_stored",
    "items_path",
    "judged_cells",
    "judged_files",
    "last_change",
    "lock_path",
    "log_path",
    "mark_done",
    "mark_failed",
    "mark_pruned",
    "mend_spec",
    "mismatch",
    "owner_path",
    "predictions_folder",
    "read_costs",
    "read_losses",
    "read_progress",
    "read_state",
    "remade",
    "run_folder",
    "shared_features",
    "sibling",
    "sign",
    "split_stem",
    "stored",
    "tidy",
    "was_finished",
    "why_failed",
    "why_pruned",
]
