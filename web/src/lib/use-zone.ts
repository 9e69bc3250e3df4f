/** The person's time zone: the chosen one, else the browser's. */
import { createContext, useContext } from "react";
import { browserZone, isZone } from "./zone";

export const ZoneContext = createContext<string | undefined>(undefined);

export function useZone(): string {
  const chosen = useContext(ZoneContext);
  return chosen && isZone(chosen) ? chosen : browserZone();
}
