import { Button, Group, MultiSelect, Select } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useClasses, useMe } from "../api/queries";
import type { RolloutCard } from "../api/types";
import { PersonSelect } from "../components/EntitySelect";
import evidence from "../components/evidence/Evidence.module.css";
import { EmptyState, Loaded, Notice } from "../components/Feedback";
import { canSeeGovernance } from "../components/GovernanceOnly";
import { Page } from "../components/Page";
import { RolloutBoard } from "../components/rollout/RolloutBoard";
import { RolloutDialogs } from "../components/rollout/RolloutDialogs";
import type { Doing } from "../components/rollout/RolloutDialogs";
import classes from "../components/rollout/Rollout.module.css";
import { SavedViews } from "../components/SavedViews";
import { SearchField } from "../components/SearchField";
import { cardKey, split, stages } from "../lib/rollout";
import { useBoard } from "../lib/use-board";
import { among, useFilters } from "../lib/use-filters";
import type { FilterChange } from "../lib/use-filters";
import { useWords } from "../lib/use-words";

function Filters({ search, onChange }: { search: URLSearchParams; onChange: (change: FilterChange) => void }) {
  const { t } = useTranslation();
  const sees = canSeeGovernance(useMe().data);
  const names = (useClasses().data?.items ?? []).filter(({ kind }) => kind === "ResourceClass").map(({ name }) => name);
  const chosen = search.get("class");
  return (
    <div className={classes.filters} role="search" aria-label={t("flows.filters")}>
      <SearchField label={t("rollout.search")} value={search.get("q") ?? ""} onChange={(q) => onChange({ q })} testId="rollout-search" />
      <Select clearable searchable aria-label={t("rollout.class")} placeholder={t("rollout.anyClass")} data={[...new Set([...names, ...(chosen ? [chosen] : [])])].sort()} value={chosen} onChange={(next) => onChange({ class: next ?? undefined })} data-testid="rollout-class" />
      {sees && <PersonSelect size="sm" clearable placeholder={t("rollout.anyOwner")} value={search.get("owner") ?? ""} onChange={(owner) => onChange({ owner })} nothingFound={t("person.noMatch")} testId="rollout-owner" />}
      <MultiSelect aria-label={t("rollout.stageLabel")} placeholder={search.has("stage") ? undefined : t("rollout.anyStage")} data={stages.map((each) => ({ value: each as string, label: t(`rollout.stage.${each}`) }))} value={among(search.getAll("stage"), stages)} onChange={(stage) => onChange({ stage })} clearable data-testid="rollout-stage" />
    </div>
  );
}

function useSelection(cards: RolloutCard[]) {
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const selected = cards.filter((card) => picked.has(cardKey(card)));
  return {
    selected,
    keys: picked,
    toggle: (key: string) =>
      setPicked((before) => {
        const next = new Set(before);
        if (!next.delete(key)) next.add(key);
        return next;
      }),
    set: (all: RolloutCard[]) => setPicked(new Set(all.map(cardKey))),
  };
}

/** RolloutPage shows the rollout stage of each resource, what is missing, and actions for many resources at once. */
export function RolloutPage() {
  const { t } = useTranslation();
  const words = useWords();
  const [search, change] = useFilters();
  const text = (key: string) => search.get(key)?.trim() || undefined;
  const stage = among(search.getAll("stage"), stages);
  const [q, owner, of] = [text("q"), text("owner"), text("class")];
  const filtered = q !== undefined || owner !== undefined || of !== undefined || stage.length > 0;
  const { all: query, board } = useBoard({ ...(q ? { q } : {}), ...(owner ? { owner } : {}), ...(of ? { class: of } : {}), ...(stage.length > 0 ? { stage } : {}) });
  const cards = board.flatMap((column) => column.cards);
  const { selected, keys, toggle, set } = useSelection(cards);
  const [doing, setDoing] = useState<Doing>();
  const possible = cards.filter((card) => split([card], "advance").able.length + split([card], "announce").able.length > 0);
  const first = query.data?.pages[0];
  return (
    <Page
      wide
      title={t("rollout.title")}
      sub={
        <>
          {t("rollout.intro")}
          {first?.threshold !== undefined && first.windowSeconds !== undefined && ` ${t("rollout.threshold", { threshold: first.threshold, duration: words.duration(first.windowSeconds) })}`}
        </>
      }
      actions={
        <Group gap="sm">
          <SavedViews page="rollout" query={search.toString()} />
          {possible.length > 0 && (
            <Button variant="default" onClick={() => set(selected.length === possible.length ? [] : possible)} data-testid="select-all">
              {selected.length === possible.length ? t("rollout.selectNone") : t("rollout.selectAll", { count: possible.length })}
            </Button>
          )}
        </Group>
      }
    >
      <Filters search={search} onChange={change} />
      <Loaded query={query}>
        {({ pages }) => (
          <>
            {pages.some((page) => !page.flowsAvailable) && <Notice testId="flows-unavailable">{t("rollout.noFlows")}</Notice>}
            {cards.length > 0 ? (
              <RolloutBoard key={search.toString()} columns={board} selection={keys} onSelect={toggle} onAct={(card, verb) => setDoing({ verb, cards: [card] })} />
            ) : (
              <EmptyState
                action={
                  filtered && (
                    <Button variant="default" onClick={() => change({ q: undefined, owner: undefined, class: undefined, stage: undefined })}>
                      {t("action.clear")}
                    </Button>
                  )
                }
              >
                {t(filtered ? "rollout.noMatch" : "rollout.empty")}
              </EmptyState>
            )}
          </>
        )}
      </Loaded>
      {selected.length > 0 && (
        <div className={evidence.bulk} role="region" aria-label={t("approvals.selection")} data-testid="rollout-selection">
          <span>{t("approvals.selected", { count: selected.length })}</span>
          <div className={evidence.buttons}>
            <Button size="xs" variant="subtle" color="gray" onClick={() => set([])}>
              {t("approvals.none")}
            </Button>
            <Button size="xs" variant="default" onClick={() => setDoing({ verb: "announce", cards: selected })} data-testid="bulk-announce">
              {t("rollout.do.announce")}
            </Button>
            <Button size="xs" onClick={() => setDoing({ verb: "advance", cards: selected })} data-testid="bulk-advance">
              {t("rollout.do.advance")}
            </Button>
          </div>
        </div>
      )}
      <RolloutDialogs
        doing={doing}
        onClose={(done) => {
          setDoing(undefined);
          if (done) set([]);
        }}
      />
    </Page>
  );
}
