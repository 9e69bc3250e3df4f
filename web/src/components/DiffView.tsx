/** The diff of one object. This module is loaded only when a change is opened, because it contains the library that compares lines. */
import { UnstyledButton, VisuallyHidden } from "@mantine/core";
import { IconArrowsVertical } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ObjectDiff } from "../api/types";
import { countOf, pairsOf, runsOf, unified } from "../lib/diff";
import type { DiffLine, Run } from "../lib/diff";
import { useWords } from "../lib/use-words";
import classes from "./DiffView.module.css";

/** DiffLayout selects how a diff is shown: with its lines one below the other, or the old and the new text side by side. */
export type DiffLayout = "unified" | "split";

function Text({ sign, line }: { sign: "-" | "+" | " "; line: DiffLine | undefined }) {
  const { t } = useTranslation();
  const className = sign === "+" ? classes.added : sign === "-" ? classes.removed : undefined;
  return (
    <td className={`${classes.text} ${line ? (className ?? "") : classes.none}`}>
      {line && (
        <>
          {sign !== " " && <VisuallyHidden>{t(sign === "+" ? "diff.added" : "diff.removed")} </VisuallyHidden>}
          <span className={classes.sign} aria-hidden>{sign}</span>
          {line.text || " "}
        </>
      )}
    </td>
  );
}

const No = ({ of }: { of: number | undefined }) => <td className={classes.number} aria-hidden>{of}</td>;

function Rows({ run, layout }: { run: Run; layout: DiffLayout }) {
  if (layout === "unified") {
    return unified(run).map(({ sign, line, left, right }) => (
      <tr key={`${left ?? ""}-${right ?? ""}`}>
        <No of={left} />
        <No of={right} />
        <Text sign={sign} line={line} />
      </tr>
    ));
  }
  return run.pairs.map(({ left, right, same }) => (
    <tr key={`${left?.number ?? ""}-${right?.number ?? ""}`}>
      <No of={left?.number} />
      <Text sign={same ? " " : "-"} line={left} />
      <No of={right?.number} />
      <Text sign={same ? " " : "+"} line={right} />
    </tr>
  ));
}

function Part({ run, layout }: { run: Run; layout: DiffLayout }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  if (run.kind === "folded" && !open) {
    return (
      <tr>
        <td colSpan={layout === "split" ? 4 : 3} className={classes.fold}>
          <UnstyledButton onClick={() => setOpen(true)}>
            <IconArrowsVertical size={13} aria-hidden /> {t("diff.unchanged", { count: run.pairs.length })}
          </UnstyledButton>
        </td>
      </tr>
    );
  }
  return <Rows run={run} layout={layout} />;
}

/** DiffView shows the diff of one object. */
export function DiffView({ object, layout }: { object: ObjectDiff; layout: DiffLayout }) {
  const { t } = useTranslation();
  const words = useWords();
  const pairs = pairsOf(object.before, object.after);
  const { added, removed } = countOf(pairs);
  const what = object.before === "" ? "diff.created" : object.after === "" ? "diff.deleted" : added + removed === 0 ? "diff.same" : "diff.changed";
  const label = `${object.kind} ${object.name}`;
  return (
    <details className={classes.object} open data-testid="diff-object" data-value={label}>
      <summary>
        <span className={classes.kind}>{object.kind}</span> <strong>{object.name}</strong> <span className={classes.what}>{t(what)}</span>
        <span className={classes.counts}>
          <span className={classes.plus}>+{words.number(added)}</span> <span className={classes.minus}>−{words.number(removed)}</span>
        </span>
        {(object.enforcer || object.clusters) && <span className={classes.where}>{[object.enforcer, object.clusters && words.list(object.clusters)].filter(Boolean).join(" · ")}</span>}
      </summary>
      {/* A scrollable region must be reachable by keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className={classes.frame} tabIndex={0} role="region" aria-label={label}>
        <table className={`${classes.table} ${layout === "split" ? classes.split : ""}`}>
          <colgroup>
            <col className={classes.numbers} />
            {layout === "split" && <col />}
            <col className={classes.numbers} />
            <col />
          </colgroup>
          <tbody>
            {runsOf(pairs).map((run, index) => (
              <Part key={index} run={run} layout={layout} />
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
