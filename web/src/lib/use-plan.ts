/** Reads the preview of a request that a person is entering. The preview is read after a pause in typing, and an older call is cancelled. */
import { useDebouncedValue } from "@mantine/hooks";
import { useImpactPreview } from "../api/flows";
import { usePreview } from "../api/queries";
import { matterOf } from "./items";
import { forPreview } from "./request";
import type { Draftable } from "./request";

const pause = 200;
/** longPause is the pause before a replay in milliseconds. It is longer, because a replay reads days of flows. */
const longPause = 600;

function useSettled(body: Draftable | undefined, wait: number) {
  const wanted = body === undefined ? "" : JSON.stringify(body);
  const [settled] = useDebouncedValue(wanted, wait);
  return body !== undefined && settled === wanted ? forPreview(body) : undefined;
}

/**
 * usePlan reads the preview of a request that is being typed. It is requested after typing pauses, and `isRequested` reports whether the request is
 * complete enough for a preview.
 */
export function usePlan(body: Draftable | undefined) {
  const query = usePreview(useSettled(body, pause));
  return { query, isRequested: body !== undefined };
}

/** useReplay returns what the request would have done to the connections of the last days. Classes and approval policies decide about no connections. */
export function useReplay(body: Draftable | undefined) {
  const request = useSettled(body !== undefined && matterOf(body.kind ?? "grant") !== "object" ? body : undefined, longPause);
  return useImpactPreview(request);
}
