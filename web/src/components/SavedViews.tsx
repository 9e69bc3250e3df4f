import { ActionIcon, Button, Group, Popover, Stack, TextInput } from "@mantine/core";
import { IconBookmark, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useMe } from "../api/queries";
import { forgetView, nameLimit, savedViews, saveView } from "../lib/saved-views";
import type { Place } from "../lib/saved-views";
import tables from "./Tables.module.css";

function Views({ place, person, search, onChosen }: { place: Place; person: string; search: string; onChosen: () => void }) {
  const { t } = useTranslation();
  const [views, setViews] = useState(() => savedViews(place, person));
  const [name, setName] = useState("");
  return (
    <Stack gap="sm" data-testid="saved-views">
      {views.length === 0 && <p className={tables.muted} style={{ margin: 0 }}>{t("requests.saved.empty")}</p>}
      {views.map((view) => (
        <Group key={view.name} justify="space-between" gap="xs" wrap="nowrap">
          <Link className={tables.title} to={`/${place}${view.search}`} onClick={onChosen}>{view.name}</Link>
          <ActionIcon variant="subtle" color="gray" size="sm" onClick={() => setViews(forgetView(place, person, view.name))} aria-label={t("requests.saved.forget", { name: view.name })}>
            <IconTrash size={14} aria-hidden />
          </ActionIcon>
        </Group>
      ))}
      {search !== "" && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (name.trim() === "") return;
            setViews(saveView(place, person, { name: name.trim(), search }));
            setName("");
          }}
        >
          <Group gap="xs" wrap="nowrap" align="flex-end">
            <TextInput size="xs" label={t("requests.saved.name")} maxLength={nameLimit} value={name} onChange={(event) => setName(event.currentTarget.value)} data-testid="saved-name" />
            <Button type="submit" size="xs" variant="default" disabled={name.trim() === ""} data-testid="saved-save">
              {t("requests.saved.save")}
            </Button>
          </Group>
        </form>
      )}
    </Stack>
  );
}

/** SavedViews stores the current filters under a name that the person chooses. */
export function SavedViews({ place, search }: { place: Place; search: string }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const person = useMe().data?.person.id;
  if (person === undefined) return null;
  return (
    <Popover opened={open} onChange={setOpen} position="bottom-end" shadow="md" trapFocus returnFocus withRoles={false}>
      <Popover.Target>
        <Button variant="default" leftSection={<IconBookmark size={15} aria-hidden />} onClick={() => setOpen(!open)} aria-expanded={open} aria-haspopup="dialog" data-testid="saved-open">
          {t("requests.saved.title")}
        </Button>
      </Popover.Target>
      <Popover.Dropdown role="dialog" aria-label={t("requests.saved.title")}>
        {open && <Views place={place} person={person} search={search} onChosen={() => setOpen(false)} />}
      </Popover.Dropdown>
    </Popover>
  );
}
