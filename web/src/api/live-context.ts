import { createContext, useContext } from "react";

/** LiveState is the state of the event stream: `connecting` until the first answer, `open` while events arrive, `lost` when they cannot. */
export type LiveState = "connecting" | "open" | "lost";

/** LiveContext provides the state of the event stream to the components below it. */
export const LiveContext = createContext<LiveState>("connecting");

/** useLive returns the state of the event stream. */
export function useLive(): LiveState {
  return useContext(LiveContext);
}
