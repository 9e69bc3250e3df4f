import { ActionIcon, Button, Group, Popover, ScrollArea, Stack, TextInput } from "@mantine/core";
import { IconBookmark, IconLink, IconTrash } from "@tabler/icons-react";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useMe } from "../api/queries";
import { useDeleteSavedView, useSavedViews, useSaveView, useTakeOver } from "../api/saved-views";
import type { SavedView, SavedViewPage } from "../api/types";
import { nameLimit, pathOf } from "../lib/saved-views";
import { ErrorState, Loaded, RowsSkeleton } from "./Feedback";
import tables from "./Tables.module.css";
import { useToast } from "./toast-context";

function Row({ view, onChosen, onDelete }: { view: SavedView; onChosen: () => void; onDelete: () => void }) {
  const { t } = useTranslation();
  const toast = useToast();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(`${location.origin}${pathOf(view)}`);
      toast(t("requests.saved.copied", { name: view.name }));
    } catch {
      // A browser may refuse, and has no clipboard for pages without TLS.
      toast(t("requests.saved.copyFailed"), "failed");
    }
  };
  return (
    <Group justify="space-between" gap="xs" wrap="nowrap" data-testid="saved-view">
      <Link className={tables.title} to={pathOf(view)} onClick={onChosen}>{view.name}</Link>
      <Group gap={2} wrap="nowrap">
        <ActionIcon variant="subtle" color="gray" size="sm" onClick={() => void copy()} aria-label={t("requests.saved.copy", { name: view.name })} title={t("requests.saved.copy", { name: view.name })}>
          <IconLink size={14} aria-hidden />
        </ActionIcon>
        <ActionIcon variant="subtle" color="gray" size="sm" onClick={onDelete} aria-label={t("requests.saved.forget", { name: view.name })} title={t("requests.saved.forget", { name: view.name })}>
          <IconTrash size={14} aria-hidden />
        </ActionIcon>
      </Group>
    </Group>
  );
}

function SaveForm({ page, query }: { page: SavedViewPage; query: string }) {
  const { t } = useTranslation();
  const save = useSaveView();
  const [name, setName] = useState("");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim() === "" || save.isPending) return;
        save.mutate({ page, name: name.trim(), query }, { onSuccess: () => setName("") });
      }}
    >
      <Group gap="xs" wrap="nowrap" align="flex-end">
        <TextInput size="xs" label={t("requests.saved.name")} maxLength={nameLimit} value={name} onChange={(event) => setName(event.currentTarget.value)} data-testid="saved-name" />
        <Button type="submit" size="xs" variant="default" loading={save.isPending} disabled={name.trim() === ""} data-testid="saved-save">
          {t("requests.saved.save")}
        </Button>
      </Group>
      {save.error ? <ErrorState error={save.error} title={t("error.actionTitle")} /> : null}
    </form>
  );
}

function Views({ page, query, onChosen }: { page: SavedViewPage; query: string; onChosen: () => void }) {
  const { t } = useTranslation();
  const views = useSavedViews();
  const remove = useDeleteSavedView();
  const list = useRef<HTMLDivElement>(null);
  // The button of a removed row had the focus, which must not leave the dialog.
  const onDelete = (id: string) => remove.mutate(id, { onSettled: () => list.current?.focus() });
  return (
    <Stack gap="sm" maw={360} ref={list} tabIndex={-1} data-testid="saved-views">
      <Loaded query={views} skeleton={<RowsSkeleton rows={2} />}>
        {({ items }) => {
          const own = items.filter((view) => view.page === page);
          if (own.length === 0) return <p className={tables.muted} style={{ margin: 0 }}>{t("requests.saved.empty")}</p>;
          return (
            <ScrollArea.Autosize mah={320} type="auto" offsetScrollbars>
              <Stack gap="xs" pr={4}>
                {own.map((view) => (
                  <Row key={view.id} view={view} onChosen={onChosen} onDelete={() => onDelete(view.id)} />
                ))}
              </Stack>
            </ScrollArea.Autosize>
          );
        }}
      </Loaded>
      {remove.error ? <ErrorState error={remove.error} title={t("error.actionTitle")} /> : null}
      {query !== "" && <SaveForm page={page} query={query} />}
    </Stack>
  );
}

/** SavedViews lists the filters of a page that the person saved, and saves the current ones under a name. The query is without a question mark. */
export function SavedViews({ page, query }: { page: SavedViewPage; query: string }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const person = useMe().data?.person.id;
  useTakeOver(page, person);
  if (person === undefined) return null;
  return (
    <Popover opened={open} onChange={setOpen} position="bottom-end" shadow="md" trapFocus returnFocus withRoles={false}>
      <Popover.Target>
        <Button variant="default" leftSection={<IconBookmark size={15} aria-hidden />} onClick={() => setOpen(!open)} aria-expanded={open} aria-haspopup="dialog" data-testid="saved-open">
          {t("requests.saved.title")}
        </Button>
      </Popover.Target>
      <Popover.Dropdown role="dialog" aria-label={t("requests.saved.title")} tabIndex={-1}>
        {open && <Views page={page} query={query} onChosen={() => setOpen(false)} />}
      </Popover.Dropdown>
    </Popover>
  );
}
