import { SegmentedControl } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { ConnectionList } from "../api/types";
import { useFilters } from "../lib/use-filters";
import { ConnectionsTable } from "./ConnectionsTable";
import { Loaded } from "./Feedback";
import { Section } from "./Page";
import { RelativeTime } from "./Time";
import classes from "./Page.module.css";
import tables from "./Tables.module.css";

interface Props {
  id: string;
  title: string;
  query: { data: ConnectionList | undefined; error: unknown; isPending: boolean; refetch: () => unknown };
  peer: "application" | "resource";
  request?: boolean;
  /** The path of the same connections in the flow explorer. */
  flows: string;
}

/** useOnlyRefused reports whether ConnectionsSection shows only refused connections, as the URL selects. */
export function useOnlyRefused(): boolean {
  const [search] = useFilters();
  return search.get("connections") !== "all";
}

/** ConnectionsSection shows the connections of an application or resource, with a filter for refused ones. */
export function ConnectionsSection({ id, title, query, peer, request = false, flows }: Props) {
  const { t } = useTranslation();
  const [, change] = useFilters();
  const onlyRefused = useOnlyRefused();
  return (
      <Section
        anchor={id}
        title={title}
        aside={
          <SegmentedControl
            size="xs"
            aria-label={t("connections.filter")}
            data={[
              { value: "refused", label: t("connections.refusedOnly") },
              { value: "all", label: t("connections.all") },
            ]}
            value={onlyRefused ? "refused" : "all"}
            onChange={(value) => change({ connections: value === "all" ? "all" : undefined })}
            data-testid="connections-filter"
          />
        }
        testId="connections"
      >
        <Loaded query={query}>
          {(list) => (
            <>
              <ConnectionsTable list={list} peer={peer} label={title} empty={onlyRefused ? t("connections.emptyRefused") : t("connections.emptyAll")} request={request} />
              {list.available && list.lastFlow && (
                <p className={`${classes.aside} ${tables.sentence}`}>
                  {t("connections.lastFlow")}: <RelativeTime at={list.lastFlow} /> · <Link to={flows}>{t("connections.explore")}</Link>
                </p>
              )}
            </>
          )}
        </Loaded>
      </Section>
  );
}
