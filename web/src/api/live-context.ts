import { createContext, useContext } from "react";

/** `connecting` until the first answer, `open` while hints arrive, `lost` when they cannot. */
export type LiveState = "connecting" | "open" | "lost";

export const LiveContext = createContext<LiveState>("connecting");

export function useLive(): LiveState {
  return useContext(LiveContext);
}
