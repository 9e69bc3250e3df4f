import { createContext, useContext } from "react";
import { browserZone, isZone } from "./zone";

/** ZoneContext provides the time zone of the person's preferences to the components below it. */
export const ZoneContext = createContext<string | undefined>(undefined);

/** useZone returns the person's time zone: the chosen one if it is valid, otherwise the browser's. */
export function useZone(): string {
  const chosen = useContext(ZoneContext);
  return chosen && isZone(chosen) ? chosen : browserZone();
}
