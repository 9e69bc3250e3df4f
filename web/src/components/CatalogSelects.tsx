/** Searchable choices of an application and of a resource. */
import { Loader, Select, Text } from "@mantine/core";
import type { ComboboxItem } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useApplicationConnections, useApplications, useResource, useResources, refused } from "../api/queries";
import { shortName } from "../lib/names";

interface Props {
  value: string;
  error: string | undefined;
  onChange: (id: string) => void;
}

const many = 50;

interface Choice {
  id: string;
  title: string;
  name: string;
}

const option = ({ id, title }: Choice): ComboboxItem => ({ value: id, label: title });

function Option({ choice }: { choice: Choice | undefined }) {
  if (!choice) return null;
  return (
    <div>
      <Text size="sm" fw={540}>{choice.title}</Text>
      <Text size="xs" c="dimmed">{shortName(choice.name)}</Text>
    </div>
  );
}

/** What was typed, unless it is only the chosen one's title standing in the field. */
function useSearch(chosen: Choice | undefined) {
  const [text, setText] = useState("");
  const typed = text === chosen?.title ? "" : text.trim();
  const [asked] = useDebouncedValue(typed, 150);
  return { text, setText, typed, asked };
}

const matches = (choice: Choice, typed: string) => `${choice.title} ${choice.name}`.toLocaleLowerCase().includes(typed.toLocaleLowerCase());

export function ApplicationSelect({ value, error, onChange }: Props) {
  const { t } = useTranslation();
  const query = useApplications({ mine: true, limit: 200 });
  const choices: Choice[] = query.data?.pages.flatMap((page) => page.items) ?? [];
  const byId = new Map(choices.map((choice) => [choice.id, choice]));
  const { text, setText, typed } = useSearch(byId.get(value));
  return (
    <Select
      label={t("request.application")}
      description={t("request.applicationHint")}
      required
      searchable
      openOnFocus={false}
      data={choices.filter((choice) => typed === "" || choice.id === value || matches(choice, typed)).map(option)}
      filter={({ options }) => options}
      searchValue={text}
      onSearchChange={setText}
      value={value === "" ? null : value}
      onChange={(id) => onChange(id ?? "")}
      renderOption={({ option: each }) => <Option choice={byId.get(each.value)} />}
      nothingFoundMessage={t("request.applicationEmpty")}
      rightSection={query.isPending ? <Loader size={14} /> : undefined}
      error={error}
      data-testid="select-application"
    />
  );
}

/** Resources that refused the application lately come first: they are why most people are here. */
export function ResourceSelect({ value, error, onChange, application }: Props & { application: string }) {
  const { t } = useTranslation();
  const chosen = useResource(value).data;
  const { text, setText, typed, asked } = useSearch(chosen);
  const found = useResources({ limit: many, ...(asked === "" ? {} : { q: asked }) });
  const denied = useApplicationConnections(application, refused);

  const byId = new Map<string, Choice>();
  const refusedNow: Choice[] = [];
  for (const { resource } of denied.data?.items ?? []) {
    if (!resource.id || byId.has(resource.id)) continue;
    const choice = { id: resource.id, title: resource.title, name: resource.name };
    byId.set(resource.id, choice);
    if (typed === "" || matches(choice, typed)) refusedNow.push(choice);
  }
  const others: Choice[] = [];
  for (const resource of found.data?.pages.flatMap((page) => page.items) ?? []) {
    if (byId.has(resource.id)) continue;
    byId.set(resource.id, resource);
    others.push(resource);
  }
  if (chosen && !byId.has(chosen.id)) {
    byId.set(chosen.id, chosen);
    others.unshift(chosen);
  }
  // A choice that the typed text hides must stay known to the field, or it would be emptied.
  if (chosen && typed !== "" && ![...refusedNow, ...others].some((each) => each.id === chosen.id)) others.unshift(chosen);

  const groups = [
    { group: t("request.refusedNow"), items: refusedNow.map(option) },
    { group: t("request.allResources"), items: others.map(option) },
  ].filter(({ items }) => items.length > 0);

  return (
    <Select
      label={t("request.resource")}
      description={t("request.resourceHint")}
      required
      searchable
      openOnFocus={false}
      data={groups}
      filter={({ options }) => options}
      searchValue={text}
      onSearchChange={setText}
      value={value === "" ? null : value}
      onChange={(id) => onChange(id ?? "")}
      renderOption={({ option: each }) => <Option choice={byId.get(each.value)} />}
      nothingFoundMessage={found.isFetching ? <Loader size={14} /> : t("request.resourceEmpty")}
      maxDropdownHeight={320}
      error={error}
      data-testid="select-resource"
    />
  );
}
