import type { TrafficKind } from "../../lib/traffic-map";
import { dashOf, kindColors } from "./paint";

/** KindSwatch shows how the map draws a kind of traffic. */
export function KindSwatch({ kind }: { kind: TrafficKind }) {
  const width = kind === "granted" ? 1.25 : 3.5;
  const color = `var(${kindColors[kind]})`;
  return (
    <svg width={34} height={12} viewBox="0 0 34 12" aria-hidden focusable={false}>
      <line x1={2} x2={kind === "refused" ? 27 : 32} y1={6} y2={6} stroke={color} strokeWidth={width} strokeDasharray={dashOf(kind, width).join(" ") || undefined} strokeLinecap={kind === "unmanaged" ? "round" : "butt"} opacity={kind === "granted" ? 0.8 : 1} />
      {kind === "refused" && <line x1={29.5} x2={29.5} y1={1.5} y2={10.5} stroke={color} strokeWidth={2} strokeLinecap="round" />}
    </svg>
  );
}
