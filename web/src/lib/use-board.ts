/**
 * The columns of the board. Up to a hundred resources are read with one call. If there are more, each column is read separately, so that no column with
 * resources looks empty.
 */
import { useRollout } from "../api/flows";
import type { RolloutFilter } from "../api/flows";
import type { RolloutCard, RolloutStage } from "../api/types";
import { columns, stages } from "./rollout";

/** unfolded is the number of further cards of a column that are shown at once. Thousands would make each keystroke slow. */
export const unfolded = 50;

/** BoardColumn is one column of the rollout board. */
export interface BoardColumn {
  stage: RolloutStage;
  cards: RolloutCard[];
  /** The number of all matching resources, including those that were not read yet. */
  count: number;
  /** Reads more resources; absent if all were read. */
  more: { busy: boolean; fetch: () => void } | undefined;
}

const cardsOf = (query: ReturnType<typeof useRollout>) => query.data?.pages.flatMap((page) => page.items);

/** useBoard reads the columns of the rollout board for the filter. */
export function useBoard(filter: RolloutFilter) {
  const all = useRollout(filter);
  const shown = stages.filter((stage) => filter.stage === undefined || filter.stage.includes(stage));
  const first = all.data?.pages[0];
  const together = columns(cardsOf(all) ?? []);
  const apart = (stage: RolloutStage) => all.hasNextPage && shown.includes(stage) && (first?.stages[stage] ?? 0) > together[stage].length;
  const column = (stage: RolloutStage): Parameters<typeof useRollout> => [{ ...filter, stage: [stage] }, { enabled: apart(stage), limit: unfolded }];
  const own = {
    observe: useRollout(...column("observe")),
    initial: useRollout(...column("initial")),
    refine: useRollout(...column("refine")),
    announced: useRollout(...column("announced")),
    enforce: useRollout(...column("enforce")),
  };
  const board = shown.map((stage): BoardColumn => {
    const query = own[stage];
    // The cards of the first answer are shown until the column's own were read.
    const cards = apart(stage) ? columns(cardsOf(query) ?? together[stage])[stage] : together[stage];
    const more = apart(stage) && query.hasNextPage ? { busy: query.isFetchingNextPage, fetch: () => void query.fetchNextPage() } : undefined;
    return { stage, cards, count: first?.stages[stage] ?? cards.length, more };
  });
  return { all, board };
}
