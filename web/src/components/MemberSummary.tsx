import { Button } from "@mantine/core";
import { useState } from "react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { ClusterState, MemberCounts } from "../api/types";
import { countStates, unlisted, worstFirst } from "../lib/members";
import badge from "./Badge.module.css";
import { clusterStateStyles } from "./state-styles";
import tables from "./Tables.module.css";

/** MemberSummary counts the members in each state if there are too many to see it at a glance. */
export function MemberSummary({ members, counts, above }: { members: ClusterState[]; counts?: MemberCounts; above: number }) {
  const { t } = useTranslation();
  const total = counts?.total ?? members.length;
  const missing = unlisted(counts);
  if (total <= above && missing === 0) return null;
  return (
    <p className={tables.above} data-testid="member-summary">
      {countStates(members, counts).map(({ state, count }) => {
        const { icon: Icon, tone } = clusterStateStyles[state];
        return (
          <span key={state} className={`${badge.badge} ${badge[tone]}`} title={t(`clusterHelp.${state}`)} data-value={state}>
            <Icon size={13} aria-hidden />
            {t("members.count", { number: count, state: t(`clusterState.${state}`) })}
          </span>
        );
      })}{" "}
      <span className={tables.muted}>{t("members.of", { number: total })}</span>
      {missing > 0 && <span className={tables.muted}> {t("members.unlisted", { number: missing })}</span>}
    </p>
  );
}

/** useWorstMembers returns the members in the worst states, and a button that shows the others. With at most `most` members it returns all in their order. */
export function useWorstMembers<T extends { cluster: string }>(members: T[], most: number, state: (member: T) => ClusterState["state"] | undefined): { shown: T[]; more: ReactNode } {
  const { t } = useTranslation();
  const [all, setAll] = useState(false);
  if (members.length <= most) return { shown: members, more: null };
  const sorted = worstFirst(members, state);
  return {
    shown: all ? sorted : sorted.slice(0, most),
    more: (
      <Button variant="subtle" color="gray" size="compact-xs" onClick={() => setAll(!all)} aria-expanded={all} data-testid="members-more">
        {all ? t("members.fewer") : t("members.all", { number: members.length })}
      </Button>
    ),
  };
}
