import type { RolloutCard } from "../../api/types";
import type { BulkVerb } from "../../lib/rollout";
import { AdvanceDialog } from "./AdvanceDialog";
import { AnnounceDialog } from "./AnnounceDialog";
import { GuardDialog } from "./GuardDialog";

/** Doing is the open dialog of the rollout board: its action and the cards that it is about. */
export interface Doing {
  verb: BulkVerb | "guard";
  cards: RolloutCard[];
}

/** RolloutDialogs shows the dialog of the action that was chosen for one or several resources. */
export function RolloutDialogs({ doing, onClose }: { doing: Doing | undefined; onClose: (done: boolean) => void }) {
  const [first] = doing?.cards ?? [];
  if (doing?.verb === "advance") return <AdvanceDialog cards={doing.cards} onClose={onClose} />;
  if (doing?.verb === "announce") return <AnnounceDialog cards={doing.cards} onClose={onClose} />;
  return doing && first ? <GuardDialog card={first} onClose={() => onClose(false)} /> : null;
}
