import { ActionIcon } from "@mantine/core";
import { IconChevronRight } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { seenKinds } from "../../lib/traffic-map";
import type { Bundle, TrafficPicture, TrafficPlace } from "../../lib/traffic-map";
import { instant } from "../../lib/table-sort";
import { ConnectionCount } from "../ConnectionCount";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import { RefName } from "../Names";
import tables from "../Tables.module.css";
import { RelativeTime } from "../Time";
import { useGrantText } from "./BundleFacts";
import { usePlaceTitle } from "./titles";

function End({ place, title }: { place: TrafficPlace; title: string }) {
  const { t } = useTranslation();
  if (place.single) return <RefName kind={place.side === "client" ? "applications" : "resources"} about={{ name: place.name, title, ...(place.id ? { id: place.id } : {}) }} />;
  return (
    <span className={tables.stack}>
      <span className={tables.title}>{title}</span>
      <span className={tables.muted}>{t(place.side === "client" ? "traffic.applications" : "traffic.resources", { count: place.names })}</span>
    </span>
  );
}

interface Row {
  index: number;
  bundle: Bundle;
  from: TrafficPlace;
  to: TrafficPlace;
  mark: "cut" | "let" | undefined;
}

interface Props {
  picture: TrafficPicture;
  marks: ReadonlyMap<number, "cut" | "let">;
  onOpen: (bundle: number) => void;
}

/** TrafficTable lists the lines of the map with the same numbers. */
export function TrafficTable({ picture, marks, onOpen }: Props) {
  const { t } = useTranslation();
  const title = usePlaceTitle();
  const grant = useGrantText();
  const rows: Row[] = picture.bundles.flatMap((bundle, index) => {
    const [from, to] = [picture.nodes[bundle.from], picture.nodes[bundle.to]];
    return from && to ? [{ index, bundle, from, to, mark: marks.get(index) }] : [];
  });
  const columns: Column<Row>[] = [
    { key: "subject", header: t("traffic.clients"), cell: ({ from }) => <End place={from} title={title(from)} />, sortBy: ({ from }) => title(from) },
    { key: "resource", header: t("traffic.servers"), cell: ({ to }) => <End place={to} title={title(to)} />, sortBy: ({ to }) => title(to) },
    ...seenKinds.map((kind): Column<Row> => ({
      key: kind,
      header: t(`traffic.kind.${kind}`),
      end: true,
      nowrap: true,
      cell: ({ bundle }) => {
        const count = bundle.counts[kind];
        return count === undefined ? <span className={tables.muted}>–</span> : <ConnectionCount of={count} />;
      },
      sortBy: ({ bundle }) => bundle.counts[kind] ?? -1,
    })),
    { key: "granted", header: t("traffic.access"), cell: ({ bundle }) => grant(bundle), sortBy: ({ bundle }) => bundle.granted },
    { key: "seen", header: t("connections.lastSeen"), nowrap: true, cell: ({ bundle }) => (bundle.lastSeen ? <RelativeTime at={bundle.lastSeen} /> : <span className={tables.muted}>–</span>), sortBy: ({ bundle }) => instant(bundle.lastSeen) },
    ...(marks.size > 0 ? [{ key: "change", header: t("traffic.overlay.change"), cell: ({ mark }: Row) => mark && t(`traffic.overlay.${mark}`), sortBy: ({ mark }: Row) => mark ?? "~" }] : []),
    {
      key: "open",
      header: t("action.column"),
      silent: true,
      end: true,
      cell: ({ index, from, to }) => (
        <ActionIcon variant="subtle" color="gray" size="sm" onClick={() => onOpen(index)} aria-label={t("traffic.open", { from: title(from), to: title(to) })} data-testid="traffic-open">
          <IconChevronRight size={16} aria-hidden />
        </ActionIcon>
      ),
    },
  ];
  return <DataTable label={t("traffic.title")} columns={columns} rows={rows} rowKey={({ from, to }) => `${from.key} ${to.key}`} rowTestId={() => "traffic-row"} onRow={({ index }) => onOpen(index)} testId="traffic-table" />;
}
