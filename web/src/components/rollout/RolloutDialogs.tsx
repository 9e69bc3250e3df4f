import { useRolloutCard } from "../../api/flows";
import type { RolloutCard } from "../../api/types";
import type { BulkVerb } from "../../lib/rollout";
import { useKeptDialog } from "../../lib/use-kept-dialog";
import type { KeptInput } from "../../lib/use-kept-dialog";
import { AdvanceDialog } from "./AdvanceDialog";
import { AnnounceDialog } from "./AnnounceDialog";
import { GuardDialog, isGuardInput } from "./GuardDialog";
import type { GuardInput } from "./GuardDialog";

/** Doing is the open dialog of the rollout board: its action and the cards that it is about. */
export interface Doing {
  verb: BulkVerb | "guard";
  cards: RolloutCard[];
}

/** RestoredGuard shows the dialog of the guard with the input from before a login. The board may not contain the resource, so it is read by its id. */
function RestoredGuard({ draft, kept, onClose }: { draft: GuardInput; kept: KeptInput; onClose: () => void }) {
  const { data: card } = useRolloutCard(draft[1].resource);
  return card?.can.guard ? <GuardDialog card={card} draft={draft} kept={kept} onClose={onClose} /> : null;
}

/** RolloutDialogs shows the dialog of the action that was chosen for one or several resources. */
export function RolloutDialogs({ doing, onClose }: { doing: Doing | undefined; onClose: (done: boolean) => void }) {
  const [first] = doing?.cards ?? [];
  const guard = useKeptDialog("guard", isGuardInput);
  const closeGuard = () => {
    guard.close();
    onClose(false);
  };
  if (!doing && guard.draft) return <RestoredGuard draft={guard.draft} kept={guard.kept} onClose={closeGuard} />;
  if (doing?.verb === "advance") return <AdvanceDialog cards={doing.cards} onClose={onClose} />;
  if (doing?.verb === "announce") return <AnnounceDialog cards={doing.cards} onClose={onClose} />;
  return doing && first ? <GuardDialog card={first} draft={undefined} kept={guard.kept} onClose={closeGuard} /> : null;
}
