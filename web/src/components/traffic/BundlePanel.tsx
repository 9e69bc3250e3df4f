import { Button, CloseButton } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { TrafficMap } from "../../api/types";
import { countsOf, groupOf, seenKinds } from "../../lib/traffic-map";
import type { Bundle, TrafficPlace } from "../../lib/traffic-map";
import { useWords } from "../../lib/use-words";
import { RefName } from "../Names";
import { RequestAccessLink } from "../RequestAccessLink";
import { DayAndTime } from "../Time";
import { BundleFacts } from "./BundleFacts";
import { KindSwatch } from "./KindSwatch";
import { usePlaceTitle } from "./titles";
import classes from "./Traffic.module.css";

/** listed is the number of links that are listed by name; the table has all of them. */
const listed = 8;
/** filtered is the number of names of a side up to which the page of flows is filtered by them. */
const filtered = 20;

/** flowsPath returns the path of the flows between the ends of links, or undefined if they have too many names or none. */
export function flowsPath(map: TrafficMap, links: number[], span: URLSearchParams): string | undefined {
  const names = (end: "from" | "to") => [...new Set(links.map((link) => map.nodes[map.links[link]?.[end] ?? -1]?.name ?? ""))];
  const [subjects, resources] = [names("from"), names("to")];
  if (subjects.length > filtered || resources.length > filtered || (subjects.includes("") && resources.includes(""))) return undefined;
  const search = new URLSearchParams(span);
  if (!subjects.includes("")) for (const each of subjects) search.append("subject", each);
  if (!resources.includes("")) for (const each of resources) search.append("resource", each);
  return `/flows?${search.toString()}`;
}

function Grant({ map, link: index }: { map: TrafficMap; link: number }) {
  const { t } = useTranslation();
  const link = map.links[index];
  if (!link?.granted) return null;
  return (
    <p data-testid="traffic-grant">
      {link.ticket ? <Link to={`/tickets/${link.ticket}`}>{link.ticket}</Link> : t("traffic.statement", { policy: link.policy ?? "", sid: link.sid ?? "" })}
      {" · "}
      {link.notAfter ? <>{t("accessMap.until")} <DayAndTime at={link.notAfter} /></> : t("accessMap.forever")}
    </p>
  );
}

/** Pair shows one link of a bundle: its ends and, unless it is the only one, its connections. */
function Pair({ map, link: index, only }: { map: TrafficMap; link: number; only: boolean }) {
  const words = useWords();
  const title = usePlaceTitle();
  const link = map.links[index];
  const [from, to] = [map.nodes[link?.from ?? -1], map.nodes[link?.to ?? -1]];
  if (!link || !from || !to) return null;
  const counts = countsOf(link);
  const named = (node: typeof from) => ({ ...node, title: title({ title: node.title, name: node.name, groupKind: groupOf(map, node).kind }) });
  return (
    <li>
      <RefName kind="applications" about={named(from)} /> → <RefName kind="resources" about={named(to)} />{" "}
      {!only && seenKinds.map((kind) => counts[kind] !== undefined && <span key={kind} className={classes.counts}><KindSwatch kind={kind} />{words.number(counts[kind])} </span>)}
    </li>
  );
}

interface Props {
  map: TrafficMap;
  bundle: Bundle;
  from: TrafficPlace;
  to: TrafficPlace;
  /** The parameters of the period. */
  span: URLSearchParams;
  onUnfold: (() => void) | undefined;
  onClose: () => void;
}

/** BundlePanel shows the selected line: its numbers, what it consists of, its grant, and where to continue. */
export function BundlePanel({ map, bundle, from, to, span, onUnfold, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const title = usePlaceTitle();
  const single = bundle.links.length === 1 ? bundle.links[0] : undefined;
  const path = flowsPath(map, bundle.links, span);
  const link = single === undefined ? undefined : map.links[single];
  const [client, server] = [map.nodes[link?.from ?? -1], map.nodes[link?.to ?? -1]];
  return (
    <section className={classes.panel} aria-label={t("traffic.selected")} data-testid="traffic-panel">
      <div className={classes.panelHead}>
        <h2>{`${title(from)} → ${title(to)}`}</h2>
        <CloseButton onClick={onClose} aria-label={t("action.close")} data-testid="traffic-close" />
      </div>
      <div className={classes.panelBody}>
        <BundleFacts bundle={bundle} map={map} />
        <div>
          <ul className={classes.pairs}>
            {bundle.links.slice(0, listed).map((each) => (
              <Pair key={each} map={map} link={each} only={single !== undefined} />
            ))}
            {bundle.links.length > listed && <li>{t("traffic.further", { count: bundle.links.length - listed, number: words.number(bundle.links.length - listed) })}</li>}
          </ul>
          {single !== undefined && <Grant map={map} link={single} />}
        </div>
      </div>
      <div className={classes.buttons}>
        {path && bundle.lastSeen && (
          <Button component={Link} to={path} size="xs" variant="default" data-testid="traffic-flows">
            {t("traffic.flows")}
          </Button>
        )}
        {onUnfold && (
          <Button size="xs" variant="default" onClick={onUnfold} data-testid="traffic-unfold">
            {t("traffic.unfold")}
          </Button>
        )}
        {bundle.granted === 0 && client?.id && server?.id && <RequestAccessLink application={client.id} resource={server.id} quiet />}
      </div>
    </section>
  );
}
