import { Button, Group } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useDeleteEntity } from "../../api/governance";
import type { Entity } from "../../api/types";
import { entityKinds, isEntity } from "../../lib/entity";
import { entitiesCSV } from "../../lib/tables/catalog";
import { useKeptDialog } from "../../lib/use-kept-dialog";
import type { KeptInput } from "../../lib/use-kept-dialog";
import { catalogOrders } from "../../lib/use-server-sort";
import { useWords } from "../../lib/use-words";
import { ToneBadge } from "../Badge";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import { Owners } from "../Names";
import type { Pages } from "../TableDownload";
import { ReasonDialog } from "../ReasonDialog";
import tables from "../Tables.module.css";
import { useToast } from "../toast-context";
import { EntityDialog } from "./EntityDialog";
import type { EntityLimits } from "./EntityDialog";

/** portal is the source name of entities that are entered in the portal. */
const portal = "portal";

function Title({ entity: { kind, id, title, gone } }: { entity: Entity }) {
  if (gone || (kind !== "application" && kind !== "resource")) return <span className={tables.title}>{title}</span>;
  return <Link className={tables.title ?? ""} to={`/${kind}s/${encodeURIComponent(id)}`}>{title}</Link>;
}

/** Removal is a reason and the entity that it is about, as ReasonDialog keeps them. */
type Removal = [reason: string, entity: [kind: Entity["kind"], id: string]];

const isRemoval = (value: unknown): value is Removal => {
  if (!Array.isArray(value) || typeof value[0] !== "string") return false;
  const about: unknown = value[1];
  return Array.isArray(about) && entityKinds.some((kind) => kind === about[0]) && typeof about[1] === "string";
};

interface RemoveProps {
  entity: Entity;
  /** The reason from before a login. */
  draft: string | undefined;
  kept: KeptInput;
  onClose: () => void;
}

function Remove({ entity, draft, kept, onClose }: RemoveProps) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const remove = useDeleteEntity();
  const { kind, id, title, gone, consequences } = entity;
  return (
    <ReasonDialog
      title={t(gone ? "entities.deleteTitle" : "entities.removeTitle", { title })}
      text={
        <>
          <p>{t(gone ? "entities.deleteText" : "entities.removeText")}</p>
          {consequences?.map((each) => (
            <p key={each.text}>{words.message(each)}</p>
          ))}
        </>
      }
      confirm={t(gone ? "entities.delete" : "entities.remove")}
      danger
      pending={remove.isPending}
      error={remove.error}
      values={[kind, id]}
      draft={draft}
      kept={kept}
      testId="remove-entity"
      onConfirm={(reason) =>
        remove.mutate({ kind, id, reason }, {
          onSuccess: () => {
            toast(t("entities.removed", { title }));
            onClose();
          },
        })
      }
      onClose={onClose}
    />
  );
}

interface Props {
  rows: Entity[];
  mayChange: boolean;
  query: Pages<Entity>;
  /** The limits of what an administrator of an organization may enter. They are absent for security administrators, who have none. */
  limits?: EntityLimits | undefined;
}

/** EntityTable lists entities of the catalog, and lets people who may change them edit and remove them. */
export function EntityTable({ rows, mayChange, query, limits }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const [chosen, setChosen] = useState<Entity>();
  const edit = useKeptDialog("edit-entity", isEntity);
  const remove = useKeptDialog("remove-entity", isRemoval);
  const rowOf = (kind: Entity["kind"], id: string) => rows.find((row) => row.kind === kind && row.id === id);
  // After a login the entity is that of the stored input. One that is not in the list any more is not removed without its consequences.
  const editing = edit.draft ? (rowOf(edit.draft.kind, edit.draft.id) ?? edit.draft) : chosen;
  const removing = remove.draft ? rowOf(...remove.draft[1]) : chosen;
  const columns: Column<Entity>[] = [
    {
      key: "title",
      header: t("entities.entity"),
      sortBy: (row) => row.title,
      cell: (row) => (
        <span className={tables.stack}>
          <Title entity={row} />
          <span className={tables.muted}>{row.id}</span>
        </span>
      ),
    },
    { key: "kind", header: t("entities.kind"), cell: (row) => t(`entities.kinds.${row.kind}`), sortBy: (row) => t(`entities.kinds.${row.kind}`) },
    { key: "owners", header: t("entities.owners"), cell: (row) => row.ownerRefs && <span title={row.owners?.join(", ")}><Owners owners={row.ownerRefs} /></span>, sortBy: (row) => row.ownerRefs?.[0]?.displayName },
    { key: "source", header: t("entities.source"), cell: (row) => (row.source === portal ? t("sources.kind.portal") : row.source), sortBy: (row) => row.source },
    {
      key: "state",
      header: t("entities.state"),
      cell: (row) => (
        <span className={tables.stack}>
          <span>{row.gone ? <ToneBadge tone="warn" word={t("entities.gone")} value="gone" /> : <ToneBadge tone="ok" word={t("entities.present")} value="present" />}</span>
          {row.consequences?.map((each) => (
            <span key={each.text} className={tables.why}>{words.message(each)}</span>
          ))}
          {row.source === portal && row.outOfBounds?.map((each) => (
            <span key={each.text} className={tables.why}>{words.message(each)}</span>
          ))}
        </span>
      ),
    },
    {
      key: "do",
      header: t("action.column"),
      silent: true,
      end: true,
      cell: (row) => {
        if (!mayChange || (row.source !== portal && !row.gone)) return null;
        // Only the security team deletes finally, and changes what is outside of the bounds.
        if (limits && (row.source !== portal || row.outOfBounds)) return null;
        return (
          <Group gap={6} justify="flex-end" wrap="nowrap">
            {row.source === portal && (
              <Button size="compact-sm" variant="default" onClick={() => { setChosen(row); edit.open(); }} aria-label={t("entities.editOf", { title: row.title })} data-testid={`edit-${row.id}`}>
                {t("entities.edit")}
              </Button>
            )}
            {!(limits && row.gone) && <Button size="compact-sm" variant="default" onClick={() => { setChosen(row); remove.open(); }} aria-label={t(row.gone ? "entities.deleteOf" : "entities.removeOf", { title: row.title })} data-testid={`remove-${row.id}`}>
              {t(row.gone ? "entities.delete" : "entities.remove")}
            </Button>}
          </Group>
        );
      },
    },
  ];
  return (
    <>
      <DataTable query={query} csv={entitiesCSV} orders={catalogOrders} label={t("entities.tab")} columns={columns} rows={rows} rowKey={(row) => `${row.kind}/${row.id}`} rowTestId={(row) => `entity-${row.kind}-${row.id}`} dim={(row) => row.gone === true} />
      {edit.opened && editing && mayChange && <EntityDialog entity={editing} draft={edit.draft} kept={edit.kept} limits={limits} onClose={edit.close} />}
      {remove.opened && removing && mayChange && <Remove entity={removing} draft={remove.draft?.[0]} kept={remove.kept} onClose={remove.close} />}
    </>
  );
}
