/** The preview of a request that is being typed: asked once the typing pauses, the older question cancelled. */
import { useDebouncedValue } from "@mantine/hooks";
import { useImpactPreview } from "../api/flows";
import { usePreview } from "../api/queries";
import { matterOf } from "./items";
import { forPreview } from "./request";
import type { Draftable } from "./request";

const pause = 200;
/** The replay reads days of flows, so it waits for a longer pause. */
const longPause = 600;

function useSettled(body: Draftable | undefined, wait: number) {
  const wanted = body === undefined ? "" : JSON.stringify(body);
  const [settled] = useDebouncedValue(wanted, wait);
  return body !== undefined && settled === wanted ? forPreview(body) : undefined;
}

export function usePlan(body: Draftable | undefined) {
  const query = usePreview(useSettled(body, pause));
  return { query, asked: body !== undefined };
}

/** What the request would have done to the connections of the last days. A class or an approval policy decides none by itself. */
export function useReplay(body: Draftable | undefined) {
  const request = useSettled(body !== undefined && matterOf(body.kind ?? "grant") !== "object" ? body : undefined, longPause);
  return useImpactPreview(request);
}
