import { ActionIcon, Checkbox, Group, Skeleton } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import type { Resource } from "../../api/types";
import { SensitivityBadge } from "../Badge";
import { ErrorState, Notice } from "../Feedback";
import { RefName } from "../Names";
import tables from "../Tables.module.css";
import classes from "./Request.module.css";

/** BasketRow is one resource of a request for access with its chosen actions, or the error of reading it. */
export interface BasketRow {
  id: string;
  resource: Resource | undefined;
  failed: unknown;
  retry: () => void;
  actions: string[];
  error: string | undefined;
  /** The applications that do not request access to this resource, although they are among the applications of the request. */
  leftOut?: { id: string; title: string }[];
}

interface RowProps {
  row: BasketRow;
  onActions: (actions: string[]) => void;
  onRemove: () => void;
  onTakeBack: ((application: string) => void) | undefined;
}

function Row({ row, onActions, onRemove, onTakeBack }: RowProps) {
  const { t } = useTranslation();
  const { id, resource, failed, retry, actions, error, leftOut = [] } = row;
  const title = resource?.title ?? id;
  return (
    <li className={classes.basketItem} data-field={`item-${id}`} data-testid={`basket-${id}`}>
      <div className={classes.basketHead}>
        {resource ? <RefName kind="resources" about={resource} full /> : <strong>{id}</strong>}
        {resource?.sensitivity === "high" && <SensitivityBadge sensitivity="high" />}
        <ActionIcon variant="subtle" color="gray" size="sm" onClick={onRemove} aria-label={t("request.remove", { title })} data-testid={`remove-${id}`}>
          <IconX size={15} aria-hidden />
        </ActionIcon>
      </div>
      {failed ? <ErrorState error={failed} onRetry={retry} /> : null}
      {!resource && !failed && <Skeleton height={22} />}
      {resource?.actions.length === 0 && <Notice>{t("request.noClass")}</Notice>}
      {resource && resource.actions.length > 0 && (
        <Checkbox.Group aria-label={t("request.actionsOf", { title })} value={actions} onChange={onActions} error={error}>
          <Group gap="lg">
            {resource.actions.map((action) => (
              <Checkbox
                key={action.name}
                size="xs"
                value={action.name}
                label={
                  <>
                    <code className={tables.code}>{action.name}</code> <span className={tables.muted}>{action.ports.join(", ")}</span>
                  </>
                }
                data-testid={`action-${action.name}`}
              />
            ))}
          </Group>
        </Checkbox.Group>
      )}
      {leftOut.length > 0 && (
        <ul className={classes.leftOut} data-testid={`left-out-${id}`}>
          {leftOut.map((application) => (
            <li key={application.id}>
              {t("request.notFor", { title: application.title })}{" "}
              {onTakeBack && (
                <button type="button" className={tables.linkButton} onClick={() => onTakeBack(application.id)} data-testid={`take-back-${application.id}`}>
                  {t("request.takeBack")}
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

interface Props {
  rows: BasketRow[];
  onActions: (id: string, actions: string[]) => void;
  onRemove: (id: string) => void;
  /** Requests a pair again that was left out. */
  onTakeBack?: (id: string, application: string) => void;
}

/** Basket lists the resources that are requested, each with its actions. */
export function Basket({ rows, onActions, onRemove, onTakeBack }: Props) {
  const { t } = useTranslation();
  if (rows.length === 0) return null;
  return (
    <ul className={classes.basket} aria-label={t("request.basket")} data-testid="basket">
      {rows.map((row) => (
        <Row key={row.id} row={row} onActions={(actions) => onActions(row.id, actions)} onRemove={() => onRemove(row.id)} onTakeBack={onTakeBack && ((application) => onTakeBack(row.id, application))} />
      ))}
    </ul>
  );
}
