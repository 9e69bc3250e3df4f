/** The preview of a request that is being typed: asked once the typing pauses, the older question cancelled. */
import { useDebouncedValue } from "@mantine/hooks";
import { usePreview } from "../api/queries";
import { forPreview } from "./request";
import type { Draftable } from "./request";

const pause = 200;

export function usePlan(body: Draftable | undefined) {
  const wanted = body === undefined ? "" : JSON.stringify(body);
  const [settled] = useDebouncedValue(wanted, pause);
  const query = usePreview(body !== undefined && settled === wanted ? forPreview(body) : undefined);
  return { query, asked: body !== undefined };
}
