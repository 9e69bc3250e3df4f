import { Group, SegmentedControl, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { FilterChange } from "../lib/use-filters";

interface Props {
  search: URLSearchParams;
  onChange: (change: FilterChange) => void;
  placeholder: string;
  scopeLabel: string;
}

/** Which part of the catalogue, and a search in it. */
export function CatalogFilters({ search, onChange, placeholder, scopeLabel }: Props) {
  const { t } = useTranslation();
  const [text, setText] = useState(search.get("q") ?? "");
  const apply = useDebouncedCallback((q: string) => onChange({ q: q.trim() }), 200);
  return (
    <Group mb="md" gap="sm">
      <SegmentedControl
        size="sm"
        aria-label={scopeLabel}
        data={[
          { value: "mine", label: t("action.mine") },
          { value: "all", label: t("action.all") },
        ]}
        value={search.get("scope") === "all" ? "all" : "mine"}
        onChange={(scope) => onChange({ scope: scope === "all" ? "all" : undefined })}
      />
      <TextInput
        flex="1 1 200px"
        maw={360}
        type="search"
        leftSection={<IconSearch size={15} aria-hidden />}
        placeholder={placeholder}
        aria-label={placeholder}
        value={text}
        maxLength={200}
        onChange={(event) => {
          setText(event.currentTarget.value);
          apply(event.currentTarget.value);
        }}
        data-testid="catalog-search"
      />
    </Group>
  );
}
