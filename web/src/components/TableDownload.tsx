import { Button, Group } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { asApiError } from "../api/client";
import { saveCSV } from "../lib/csv";
import type { CsvTable } from "../lib/csv";
import { useFilters } from "../lib/use-filters";
import { useWords } from "../lib/use-words";
import { ErrorState } from "./Feedback";
import classes from "./DataTable.module.css";

/** Pages is the query of a list of which the server returns one page at a time. */
export interface Pages<Row> {
  data: { pages: { items: Row[] }[] } | undefined;
  hasNextPage: boolean;
  error: unknown;
  fetchNextPage: () => Promise<Pages<Row>>;
}

/** mostRows bounds the rows of a file, which are in the memory of the browser. */
export const mostRows = 10_000;
/** pause is the time in milliseconds after a page. The server limits how many requests a person may send. */
const pause = 25;
/** longPause is the time in milliseconds after which a page is read again if the server refused the request because of that limit. */
const longPause = 1_000;
const mostRefusals = 60;

const sleep = (time: number) => new Promise((resolve) => setTimeout(resolve, time));

/** readAll reads the pages that follow until `goesOn` returns false. It returns undefined in that case. */
async function readAll<Row>(first: Pages<Row>, goesOn: () => boolean, onRead: (rows: number) => void): Promise<{ rows: Row[]; more: boolean } | undefined> {
  let refusals = 0;
  for (let query = first; goesOn(); ) {
    const rows = query.data?.pages.flatMap(({ items }) => items) ?? [];
    onRead(rows.length);
    if (!query.hasNextPage || rows.length >= mostRows) return { rows: rows.slice(0, mostRows), more: query.hasNextPage || rows.length > mostRows };
    query = await query.fetchNextPage();
    const refused = query.error && asApiError(query.error).code === "rate-limited";
    if (query.error && (!refused || ++refusals > mostRefusals)) throw query.error;
    await sleep(refused ? longPause : pause);
  }
  return undefined;
}

type State = { is: "idle" } | { is: "reading"; rows: number } | { is: "failed"; error: unknown } | { is: "cut" };

interface Props<Row> {
  csv: CsvTable<Row>;
  rows: readonly Row[];
  /** The query of the rows, if the server has more rows than were read. */
  query?: Pages<Row> | undefined;
}

/** TableDownload saves a table as CSV, and shows nothing for a table without rows. It first reads the rows that are still on the server, and shows how many it has read. */
export function TableDownload<Row>({ csv, rows, query }: Props<Row>) {
  const { t } = useTranslation();
  const words = useWords();
  const [state, setState] = useState<State>({ is: "idle" });
  const [search] = useFilters();
  // LoadMore writes the number of pages, which selects no other rows.
  const filters = new URLSearchParams([...search].filter(([name]) => !name.endsWith("pages"))).toString();
  // The number of the present run; a run ends when it is no longer its own.
  const run = useRef(0);
  useEffect(() => {
    const ended = run;
    return () => {
      ended.current++;
      setState({ is: "idle" });
    };
  }, [filters]);

  const start = async () => {
    if (!query?.hasNextPage) {
      saveCSV(csv, rows);
      return;
    }
    const own = ++run.current;
    const goesOn = () => run.current === own;
    setState({ is: "reading", rows: rows.length });
    try {
      const found = await readAll(query, goesOn, (count) => setState({ is: "reading", rows: count }));
      if (!found || !goesOn()) return;
      saveCSV(csv, found.rows);
      setState({ is: found.more ? "cut" : "idle" });
    } catch (error) {
      if (goesOn()) setState({ is: "failed", error });
    }
  };
  const stop = () => {
    run.current++;
    setState({ is: "idle" });
  };

  if (rows.length === 0) return null;
  return (
    <div className={classes.download}>
      {state.is === "reading" ? (
        <Group gap={10}>
          <span role="status" data-testid="csv-progress">{t("table.reading", { number: words.number(state.rows) })}</span>
          <Button variant="subtle" color="gray" size="compact-sm" onClick={stop} data-testid="csv-stop">{t("table.stop")}</Button>
        </Group>
      ) : (
        <Button variant="subtle" color="gray" size="compact-sm" leftSection={<IconDownload size={15} aria-hidden />} onClick={() => void start()} data-testid="csv">
          {t("table.csv")}
        </Button>
      )}
      {state.is === "cut" && <p role="status" data-testid="csv-cut">{t("table.cut", { number: words.number(mostRows) })}</p>}
      {state.is === "failed" && <ErrorState error={state.error} title={t("table.csvFailed")} onRetry={() => void start()} />}
    </div>
  );
}
