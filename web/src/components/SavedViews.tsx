import { ActionIcon, Button, Group, Popover, ScrollArea, Stack, TextInput } from "@mantine/core";
import { IconBookmark, IconLink, IconLinkOff, IconTrash } from "@tabler/icons-react";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useLocation } from "react-router";
import { useMe } from "../api/queries";
import { useDeleteSavedView, useSavedViews, useSaveView, useSharedView, useShareView, useTakeOver, useUnshareView } from "../api/saved-views";
import type { SavedView, SavedViewPage } from "../api/types";
import { canonical, freeName, linkPath, nameLimit, pathOf, sharedFrom } from "../lib/saved-views";
import { ErrorState, Loaded, RowsSkeleton } from "./Feedback";
import tables from "./Tables.module.css";
import { useToast } from "./toast-context";

interface RowProps {
  view: SavedView;
  onChosen: () => void;
  /** Shares the view if it is not shared, and copies its link. */
  onCopy: () => void;
  onUnshare: () => void;
  onDelete: () => void;
}

function Row({ view, onChosen, onCopy, onUnshare, onDelete }: RowProps) {
  const { t } = useTranslation();
  const { name, link } = view;
  const copy = t(link === undefined ? "requests.saved.share" : "requests.saved.copy", { name });
  const unshare = t("requests.saved.unshare", { name });
  const forget = t("requests.saved.forget", { name });
  return (
    <Group justify="space-between" gap="xs" wrap="nowrap" data-testid="saved-view">
      <div>
        <Link className={tables.title} to={pathOf(view)} onClick={onChosen}>{name}</Link>
        {link !== undefined && (
          <div className={tables.muted}>
            <Link to={linkPath(link)} onClick={onChosen} title={t("requests.saved.sharedHelp")} data-testid="saved-shared">{t("requests.saved.isShared")}</Link>
          </div>
        )}
      </div>
      <Group gap={2} wrap="nowrap">
        <ActionIcon variant="subtle" color="gray" size="sm" onClick={onCopy} aria-label={copy} title={copy} data-testid="saved-copy">
          <IconLink size={14} aria-hidden />
        </ActionIcon>
        {link !== undefined && (
          <ActionIcon variant="subtle" color="gray" size="sm" onClick={onUnshare} aria-label={unshare} title={unshare} data-testid="saved-unshare">
            <IconLinkOff size={14} aria-hidden />
          </ActionIcon>
        )}
        <ActionIcon variant="subtle" color="gray" size="sm" onClick={onDelete} aria-label={forget} title={forget}>
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
  const toast = useToast();
  const share = useShareView();
  const unshare = useUnshareView();
  const remove = useDeleteSavedView();
  const list = useRef<HTMLDivElement>(null);
  // The button that was pressed is removed with its row, or with the link. The focus must not leave the dialog.
  const keepFocus = { onSettled: () => list.current?.focus() };
  const onCopy = async (view: SavedView) => {
    let link = view.link;
    try {
      link ??= (await share.mutateAsync(view.id)).link;
    } catch {
      return; // The error is shown below the list.
    }
    try {
      await navigator.clipboard.writeText(`${location.origin}${linkPath(link ?? "")}`);
      toast(t("requests.saved.copied", { name: view.name }));
    } catch {
      // A browser may refuse, and has no clipboard for pages without TLS.
      toast(t("requests.saved.copyFailed"), "failed");
    }
  };
  const failed = [share.error, unshare.error, remove.error].find(Boolean);
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
                  <Row key={view.id} view={view} onChosen={onChosen} onCopy={() => void onCopy(view)} onUnshare={() => unshare.mutate(view.id, keepFocus)} onDelete={() => remove.mutate(view.id, keepFocus)} />
                ))}
              </Stack>
            </ScrollArea.Autosize>
          );
        }}
      </Loaded>
      {failed ? <ErrorState error={failed} title={t("error.actionTitle")} /> : null}
      {query !== "" && <SaveForm page={page} query={query} />}
    </Stack>
  );
}

/** Shared names the shared view from which the page was opened and offers to keep it. It renders nothing for the person who shares it. */
function Shared({ link }: { link: string }) {
  const { t } = useTranslation();
  const toast = useToast();
  const view = useSharedView(link).data;
  const own = useSavedViews().data;
  const save = useSaveView();
  if (!view || view.own || !own) return null;
  const { page, name, query, by } = view;
  const ofPage = own.items.filter((each) => each.page === page);
  const has = ofPage.some((each) => canonical(each.query) === canonical(query));
  const keep = () => {
    const free = freeName(name, new Set(ofPage.map((each) => each.name)));
    save.mutate({ page, name: free, query }, { onSuccess: () => toast(t("requests.saved.kept", { name: free })) });
  };
  return (
    <div data-testid="shared-view">
      <span className={tables.muted}>{t("requests.saved.by", { name, person: by.displayName })}</span>{" "}
      {!has && (
        <button type="button" className={tables.linkButton} onClick={keep} disabled={save.isPending} data-testid="shared-keep">
          {t("requests.saved.keep")}
        </button>
      )}
      {save.error ? <ErrorState error={save.error} title={t("error.actionTitle")} /> : null}
    </div>
  );
}

/** SavedViews lists the filters of a page that the person saved, and saves the current ones under a name. The query is without a question mark. */
export function SavedViews({ page, query }: { page: SavedViewPage; query: string }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const person = useMe().data?.person.id;
  // The page may change its address, which drops the state, but the view from which it was opened stays the same.
  const { state } = useLocation();
  const [shared] = useState(() => sharedFrom(state));
  useTakeOver(page, person);
  if (person === undefined) return null;
  const button = (
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
  return shared === undefined ? button : (
    <Group gap="xs" justify="flex-end">
      <Shared link={shared} />
      {button}
    </Group>
  );
}
