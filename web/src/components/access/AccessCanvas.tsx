import { ActionIcon } from "@mantine/core";
import { IconMinus, IconPlus, IconViewportWide } from "@tabler/icons-react";
import { useCallback, useEffect, useEffectEvent, useId, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { KeyboardEvent, PointerEvent, ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { AccessGraph } from "../../api/types";
import { pictureOf, zoomed } from "../../lib/access-graph";
import type { Level, Picture, PictureNode, View } from "../../lib/access-graph";
import { hoverText } from "../../lib/labels";
import { shortName } from "../../lib/names";
import { useWords } from "../../lib/use-words";
import classes from "./Access.module.css";
import { colorsOf, fitted, heightOf, nodeAt, painter } from "./draw";
import { NodeSearch } from "./NodeSearch";

const step = 60;
const click = 4;

/** useTitles returns the displayed names: groups have translated texts, and resource names are shortened. */
function useTitles(picture: Picture): string[] {
  const { t } = useTranslation();
  return useMemo(() => {
    const groups: Partial<Record<PictureNode["kind"], string>> = { anyone: t("accessMap.everyone"), cidr: t("accessMap.outside"), wildcard: t("accessMap.wildcards"), none: t("accessMap.noTeam") };
    return picture.nodes.map((node) => {
      if (node.title === "" || node.name === "*") return groups[node.kind] ?? node.kind;
      return node.title === node.name ? shortName(node.name) : node.title;
    });
  }, [picture, t]);
}

interface Props {
  graph: AccessGraph;
  level: Level;
  onPick: (node: PictureNode) => void;
  /** Shown next to the search, for example the level. */
  children: ReactNode;
}

/** AccessCanvas shows the access graph, which can be moved, zoomed and searched. A click selects a node. */
export function AccessCanvas({ graph, level, onPick, children }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const hint = useId();
  const canvas = useRef<HTMLCanvasElement>(null);
  const picture = useMemo(() => pictureOf(graph, level), [graph, level]);
  const titles = useTitles(picture);
  const [size, setSize] = useState({ width: 800, height: 480 });
  const [moved, setMoved] = useState<{ of: Picture; view: View }>();
  const [hovered, setHovered] = useState<number>();
  const [draw] = useState(painter);
  const drag = useRef<{ x: number; y: number; far: boolean }>(undefined);
  const view = moved?.of === picture ? moved.view : fitted(picture, size, false);
  const setView = (next: View) => setMoved({ of: picture, view: next });
  const active = hovered !== undefined && hovered < picture.nodes.length ? hovered : undefined;

  const activeNode = picture.nodes[active ?? -1];
  const activeName = activeNode && hoverText(titles[active ?? -1] ?? "", activeNode.kind === "team" ? "" : activeNode.name);

  const paint = useEffectEvent(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) return;
    const ratio = globalThis.devicePixelRatio || 1;
    const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
    if (element.width !== width || element.height !== height) [element.width, element.height] = [width, height];
    draw(context, { picture, view, size, colors: colorsOf(element), titles, active });
  });
  // Draws after each change; changes in one frame are drawn once.
  useLayoutEffect(() => {
    const frame = requestAnimationFrame(() => paint());
    return () => cancelAnimationFrame(frame);
  });
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth || 800, height: element.clientHeight || 480 }));
    observer.observe(element);
    // The colours follow the scheme, which is an attribute of the root.
    const scheme = new MutationObserver(() => paint());
    scheme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-mantine-color-scheme"] });
    return () => {
      observer.disconnect();
      scheme.disconnect();
    };
  }, []);
  // React's own wheel listeners cannot keep the page from zooming.
  const wheel = useEffectEvent((event: WheelEvent) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    setView(zoomed(view, Math.exp(-event.deltaY / 300), event.offsetX, event.offsetY));
  });
  useEffect(() => {
    const element = canvas.current;
    const listener = (event: WheelEvent) => wheel(event);
    element?.addEventListener("wheel", listener, { passive: false });
    return () => element?.removeEventListener("wheel", listener);
  }, []);

  const at = (event: PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    return nodeAt(picture, view, size.width, event.clientX - box.left, event.clientY - box.top);
  };
  const onMove = (event: PointerEvent) => {
    const from = drag.current;
    if (!from) {
      setHovered(at(event));
      return;
    }
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    if (!from.far && Math.hypot(dx, dy) < click) return;
    drag.current = { x: event.clientX, y: event.clientY, far: true };
    setView({ ...view, x: view.x + dx, y: view.y + dy });
  };
  const onUp = (event: PointerEvent) => {
    const from = drag.current;
    drag.current = undefined;
    const node = from && !from.far ? picture.nodes[at(event) ?? -1] : undefined;
    if (node?.focus) onPick(node);
  };
  const nearer = (by: number) => setView(zoomed(view, by, size.width / 2, size.height / 2));
  const fit = () => setView(fitted(picture, size, true));
  const keys: Record<string, () => void> = {
    ArrowUp: () => setView({ ...view, y: view.y + step }),
    ArrowDown: () => setView({ ...view, y: view.y - step }),
    ArrowLeft: () => setView({ ...view, x: view.x + step }),
    ArrowRight: () => setView({ ...view, x: view.x - step }),
    "+": () => nearer(1.3),
    "=": () => nearer(1.3),
    "-": () => nearer(1 / 1.3),
    "0": fit,
  };
  const onKey = (event: KeyboardEvent) => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
  // NodeSearch has thousands of names, so it must not render again on each pointer move.
  const picked = useRef(onPick);
  useEffect(() => {
    picked.current = onPick;
  });
  const find = useCallback((node: PictureNode) => picked.current(node), []);

  return (
    <div className={classes.frame} data-testid="access-graph">
      <div className={classes.tools}>
        {children}
        <NodeSearch picture={picture} titles={titles} onPick={find} />
        <ActionIcon variant="default" onClick={() => nearer(1.3)} aria-label={t("accessMap.zoomIn")}>
          <IconPlus size={15} aria-hidden />
        </ActionIcon>
        <ActionIcon variant="default" onClick={() => nearer(1 / 1.3)} aria-label={t("accessMap.zoomOut")}>
          <IconMinus size={15} aria-hidden />
        </ActionIcon>
        <ActionIcon variant="default" onClick={fit} aria-label={t("accessMap.fit")} data-testid="graph-fit">
          <IconViewportWide size={15} aria-hidden />
        </ActionIcon>
      </div>
      {/* What can be moved by keys must be reachable by them. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions, jsx-a11y/no-noninteractive-tabindex */}
      <div role="img" tabIndex={0} className={classes.holder} aria-label={t("accessMap.picture", { clients: words.number(picture.clients), servers: words.number(picture.servers), links: words.number(picture.links.length) })} aria-describedby={hint} onKeyDown={onKey} data-scale={view.k.toFixed(2)} data-testid="graph-picture">
        <canvas
          ref={canvas}
          className={classes.canvas}
          style={{ height: heightOf(picture, size.width, globalThis.innerHeight) }}
          title={activeName}
          data-near={active !== undefined && picture.nodes[active]?.focus !== undefined}
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            drag.current = { x: event.clientX, y: event.clientY, far: false };
          }}
          onPointerMove={onMove}
          onPointerUp={onUp}
          onPointerLeave={() => setHovered(undefined)}
        />
      </div>
      <div className={classes.legend}>
        <span data-look="allow">{t("accessMap.legend.allow")}</span>
        <span data-look="deny">{t("accessMap.legend.deny")}</span>
        <span data-look="idle">{t("accessMap.legend.idle")}</span>
        {picture.nodes.some(({ mode }) => mode) && (
          <>
            <span data-look="enforced">{t("accessMap.legend.enforced")}</span>
            <span data-look="open">{t("accessMap.legend.open")}</span>
          </>
        )}
        <p id={hint}>{t("accessMap.keys")}</p>
      </div>
    </div>
  );
}
