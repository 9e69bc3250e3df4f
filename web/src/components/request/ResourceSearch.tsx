import { Loader, Select } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { applicationConnections, refused, useResources } from "../../api/queries";
import { shortName } from "../../lib/names";
import { recentResources } from "../../lib/recent";
import { Option, option, useTyped } from "../EntitySelect";
import type { Choice } from "../EntitySelect";

interface Props {
  applications: string[];
  person: string;
  /** Ids of the resources that are already in the basket. */
  taken: string[];
  error: string | undefined;
  onAdd: (id: string) => void;
}

const many = 50;
/** refusingFor is the maximum number of applications whose refused connections are read: each is a query that is repeated. */
const refusingFor = 5;
const matches = (choice: Choice, typed: string) => `${choice.title} ${choice.hint}`.toLocaleLowerCase().includes(typed.toLocaleLowerCase());

/** ResourceSearch adds resources to the basket. Resources that refused one of the applications recently come first, then those that were requested before. */
export function ResourceSearch({ applications, person, taken, error, onAdd }: Props) {
  const { t } = useTranslation();
  const { text, setText, typed, asked } = useTyped(undefined);
  const [recent] = useState(() => recentResources(person));
  const [first] = applications;
  const found = useResources({ limit: many, ...(first === undefined ? {} : { deniedFor: first }), ...(asked === "" ? {} : { q: asked }) });
  const denied = useQueries({ queries: applications.slice(0, refusingFor).map((application) => applicationConnections(application, refused)) });

  const seen = new Set(taken);
  const byId = new Map<string, Choice>();
  const fresh = (choice: Choice): boolean => {
    if (seen.has(choice.id) || (typed !== "" && !matches(choice, typed))) return false;
    seen.add(choice.id);
    byId.set(choice.id, choice);
    return true;
  };
  const refusedNow = denied.flatMap(({ data: connections }) => connections?.items ?? []).flatMap(({ resource: { id, title, name } }) => (id ? [{ id, title, hint: shortName(name) }] : [])).filter(fresh);
  const before = recent.filter(fresh);
  const others = (found.data?.pages.flatMap((page) => page.items) ?? [])
    .map(({ id, title, name }) => ({ id, title, hint: shortName(name) }))
    .filter((choice) => {
      if (seen.has(choice.id)) return false;
      // The server has already filtered the results, also by fields that are not shown here.
      seen.add(choice.id);
      byId.set(choice.id, choice);
      return true;
    });
  const data = [
    { group: t("request.refusedNow"), items: refusedNow.map(option) },
    { group: t("request.recent"), items: before.map(option) },
    { group: t("request.allResources"), items: others.map(option) },
  ].filter(({ items }) => items.length > 0);

  return (
    <Select
      label={t("request.resource")}
      description={t("request.resourceHint")}
      placeholder={taken.length === 0 ? t("request.resourceSearch") : t("request.resourceMore")}
      required
      searchable
      openOnFocus={false}
      filter={({ options }) => options}
      value={null}
      onChange={(id) => {
        if (id) onAdd(id);
        setText("");
      }}
      data={data}
      searchValue={text}
      onSearchChange={setText}
      renderOption={({ option: each }) => <Option choice={byId.get(each.value)} />}
      maxDropdownHeight={320}
      nothingFoundMessage={found.isFetching ? <Loader size={14} /> : t("request.resourceEmpty")}
      error={error}
      data-testid="select-resource"
    />
  );
}
