import { SegmentedControl } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import { useTicketChange } from "../api/queries";
import type { ChangeView, ObjectDiff, Ticket } from "../api/types";
import { lazyPart } from "../lib/page-load";
import { useWords } from "../lib/use-words";
import classes from "./ObjectChanges.module.css";
import type { DiffLayout } from "./DiffView";
import { Loaded, Notice, RowsSkeleton } from "./Feedback";

const DiffView = lazyPart(async () => (await import("./DiffView")).DiffView);

function Layer({ title, objects, layout }: { title: string; objects: ObjectDiff[]; layout: DiffLayout }) {
  if (objects.length === 0) return null;
  return (
    <section className={classes.layer}>
      <h3 className={classes.title}>{title}</h3>
      <Suspense fallback={<RowsSkeleton rows={2} />}>
        {objects.map((object) => (
          <DiffView key={`${object.kind}/${object.name}/${object.enforcer ?? ""}/${object.clusters?.join(",") ?? ""}`} object={object} layout={layout} />
        ))}
      </Suspense>
    </section>
  );
}

/** ObjectChanges shows the changed objects of ACP, and the objects that are generated from them for each dataplane. */
export function ObjectChanges({ change, compact = false }: { change: ChangeView; compact?: boolean }) {
  const { t } = useTranslation();
  const words = useWords();
  const narrow = useMediaQuery("(max-width: 62em)", undefined, { getInitialValueInEffect: false });
  const [chosen, setChosen] = useState<DiffLayout>("unified");
  // Two columns of code need a wide screen.
  const choice = !narrow && !compact;
  const layout = choice ? chosen : "unified";
  const dataplane = change.objects.filter((object) => object.layer === "dataplane");
  const acp = change.objects.filter((object) => object.layer !== "dataplane");
  return (
    <div data-testid="change">
      {choice && change.objects.length > 0 && (
        <SegmentedControl
          className={classes.choice}
          size="xs"
          aria-label={t("diff.layout")}
          data={[
            { value: "unified", label: t("diff.unified") },
            { value: "split", label: t("diff.split") },
          ]}
          value={chosen}
          onChange={(next) => setChosen(next === "split" ? "split" : "unified")}
          data-testid="diff-layout"
        />
      )}
      {change.notes && <Notice>{change.notes.map((note) => words.message(note)).join(" ")}</Notice>}
      {change.objects.length === 0 && !change.notes && <p className={classes.empty}>{t("diff.empty")}</p>}
      {change.refused && change.refused.length > 0 && (
        <div className={classes.refused} role="note" data-testid="change-refused">
          <strong>{t("diff.refused")}</strong>
          <ul>
            {change.refused.map((each) => (
              <li key={each.text}>{words.message(each)}</li>
            ))}
          </ul>
        </div>
      )}
      <Layer title={t("diff.acp")} objects={acp} layout={layout} />
      <Layer title={t("diff.dataplane")} objects={dataplane} layout={layout} />
    </div>
  );
}

/** GrantedLines shows the exact text that the approvals refer to, below its translation if it has one. */
function GrantedLines({ ticket }: { ticket: Ticket }) {
  const { t } = useTranslation();
  const words = useWords();
  const lines = new Map(ticket.items.flatMap((item) => item.lines ?? []).map((line) => [line.text, words.message(line)]));
  if (lines.size === 0) return null;
  return (
    <section className={classes.layer} data-testid="granted-lines">
      <h3 className={classes.title}>{t("ticket.lines")}</h3>
      <p className={classes.empty}>{t("ticket.linesHelp")}</p>
      <ul className={classes.lines}>
        {[...lines].map(([line, translated]) => (
          <li key={line}>
            {translated !== line && <div>{translated}</div>}
            <code className={translated === line ? undefined : classes.exact}>{line}</code>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** TicketChanges shows the changes of a ticket. They are read when the tab is opened. */
export function TicketChanges({ ticket }: { ticket: Ticket }) {
  const query = useTicketChange(ticket.id);
  return (
    <>
      <Loaded query={query}>{(change) => <ObjectChanges change={change} />}</Loaded>
      <GrantedLines ticket={ticket} />
    </>
  );
}
