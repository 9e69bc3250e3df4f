/** Searchable selects of catalog entities. The server searches; the chosen entity stays available whatever is typed. */
import { Loader, MultiSelect, Select, Text } from "@mantine/core";
import type { ComboboxItem, SelectProps } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQueries } from "@tanstack/react-query";
import { useState } from "react";
import type { Ref } from "react";
import { useTranslation } from "react-i18next";
import { applicationQuery, useApplication, useApplications, useGroup, useGroups, usePeople, usePerson, useResource, useResources } from "../api/queries";
import { shortName } from "../lib/names";

/** Choice is one entry of a select: an id, a title and a hint below the title. */
export interface Choice {
  id: string;
  title: string;
  hint: string;
}

/** option returns the entry of Mantine's combobox for a choice. */
export const option = ({ id, title }: Choice): ComboboxItem => ({ value: id, label: title });

/** Option shows the title and the hint of a choice in the list of a select. */
export function Option({ choice }: { choice: Choice | undefined }) {
  if (!choice) return null;
  return (
    <div>
      <Text size="sm" fw={540}>{choice.title}</Text>
      <Text size="xs" c="dimmed">{choice.hint}</Text>
    </div>
  );
}

/** useTyped returns the typed text, or nothing while the field shows the title of the chosen entity. */
export function useTyped(chosen: Choice | undefined) {
  const [text, setText] = useState("");
  const typed = text === chosen?.title ? "" : text.trim();
  const [asked] = useDebouncedValue(typed, 150);
  return { text, setText, typed, asked };
}

interface Props extends Pick<SelectProps, "label" | "description" | "placeholder" | "error" | "required" | "clearable" | "size" | "w"> {
  value: string;
  onChange: (id: string) => void;
  nothingFound: string;
  testId: string;
}

interface Found {
  choices: Choice[];
  loading: boolean;
  chosen: Choice | undefined;
}

function EntitySelect({ value, onChange, found, typed, nothingFound, testId, ...rest }: Props & { found: Found; typed: ReturnType<typeof useTyped> }) {
  const { chosen, loading } = found;
  const choices = chosen && !found.choices.some((each) => each.id === chosen.id) ? [chosen, ...found.choices] : found.choices;
  const byId = new Map(choices.map((choice) => [choice.id, choice]));
  const name = typeof rest.label === "string" ? undefined : rest.placeholder;
  return (
    <Select
      searchable
      openOnFocus={false}
      aria-label={name}
      filter={({ options }) => options}
      data={choices.map(option)}
      value={value === "" ? null : value}
      onChange={(id) => onChange(id ?? "")}
      searchValue={typed.text}
      onSearchChange={typed.setText}
      renderOption={({ option: each }) => <Option choice={byId.get(each.value)} />}
      maxDropdownHeight={320}
      nothingFoundMessage={loading ? <Loader size={14} /> : nothingFound}
      data-testid={testId}
      {...rest}
    />
  );
}

const named = ({ id, title, name }: { id: string; title: string; name: string }): Choice => ({ id, title, hint: shortName(name) });

/** ApplicationSelect selects an application. With `mine`, it offers only applications for which the person may request access. */
export function ApplicationSelect({ mine = false, ...props }: Props & { mine?: boolean }) {
  const detail = useApplication(props.value).data;
  const chosen = detail && named(detail);
  const typed = useTyped(chosen);
  const query = useApplications({ mine, limit: 50, ...(typed.asked ? { q: typed.asked } : {}) });
  const choices = query.data?.pages.flatMap((page) => page.items).map(named) ?? [];
  return <EntitySelect {...props} typed={typed} found={{ choices, chosen, loading: query.isFetching }} />;
}

interface SeveralProps extends Pick<Props, "label" | "description" | "placeholder" | "error" | "required" | "nothingFound" | "testId"> {
  mine?: boolean;
  value: string[];
  onChange: (ids: string[]) => void;
  /** The maximum number of applications. */
  max: number;
  inputRef?: Ref<HTMLInputElement>;
}

/** ApplicationsSelect selects several applications. With `mine`, it offers only applications for which the person may request access. */
export function ApplicationsSelect({ mine = false, value, onChange, max, inputRef, nothingFound, testId, ...rest }: SeveralProps) {
  const chosen = useQueries({ queries: value.map((id) => applicationQuery(id)) });
  const { text, setText, asked } = useTyped(undefined);
  const query = useApplications({ mine, limit: 50, ...(asked ? { q: asked } : {}) });
  const found = query.data?.pages.flatMap((page) => page.items).map(named) ?? [];
  const byId = new Map(found.map((choice) => [choice.id, choice]));
  // An application that was not read (yet) is named by its id, so that it can be removed.
  value.forEach((id, index) => {
    const detail = chosen[index]?.data;
    byId.set(id, detail ? named(detail) : (byId.get(id) ?? { id, title: id, hint: "" }));
  });
  return (
    <MultiSelect
      ref={inputRef ?? null}
      searchable
      hidePickedOptions
      openOnFocus={false}
      maxValues={max}
      filter={({ options }) => options}
      data={[...byId.values()].map(option)}
      value={value}
      onChange={onChange}
      searchValue={text}
      onSearchChange={setText}
      renderOption={({ option: each }) => <Option choice={byId.get(each.value)} />}
      maxDropdownHeight={320}
      nothingFoundMessage={query.isFetching ? <Loader size={14} /> : nothingFound}
      data-testid={testId}
      {...rest}
    />
  );
}

/** ResourceSelect selects a resource. */
export function ResourceSelect(props: Props) {
  const detail = useResource(props.value).data;
  const chosen = detail && named(detail);
  const typed = useTyped(chosen);
  const query = useResources({ limit: 50, ...(typed.asked ? { q: typed.asked } : {}) });
  const choices = query.data?.pages.flatMap((page) => page.items).map(named) ?? [];
  return <EntitySelect {...props} typed={typed} found={{ choices, chosen, loading: query.isFetching }} />;
}

/** PersonSelect selects a person. */
export function PersonSelect(props: Props) {
  const person = usePerson(props.value).data?.person;
  const chosen = person && { id: person.id, title: person.displayName, hint: person.title ?? person.id };
  const typed = useTyped(chosen);
  const query = usePeople(typed.asked);
  const choices = query.data?.items.map(({ id, displayName, title }) => ({ id, title: displayName, hint: title ?? id })) ?? [];
  return <EntitySelect {...props} typed={typed} found={{ choices, chosen, loading: query.isFetching }} />;
}

/** GroupSelect selects a group of people. */
export function GroupSelect(props: Props) {
  const { t } = useTranslation();
  const choice = ({ id, displayName, members }: { id: string; displayName: string; members: number }): Choice => ({ id, title: displayName, hint: `${id} · ${t("group.members", { count: members })}` });
  const same = useGroup(props.value).data;
  // A group that was not read (yet), or that the catalog does not have any more, is named by its id.
  const chosen = props.value === "" ? undefined : same ? choice(same) : { id: props.value, title: props.value, hint: "" };
  const typed = useTyped(chosen);
  const query = useGroups(typed.asked);
  return <EntitySelect {...props} typed={typed} found={{ choices: query.data?.items.map(choice) ?? [], chosen, loading: query.isFetching }} />;
}
