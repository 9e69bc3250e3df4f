import { useTranslation } from "react-i18next";
import { InfoDialog } from "../InfoDialog";
import classes from "./Approvals.module.css";
import { shortcuts } from "./shortcuts";

/** ShortcutsDialog shows the keyboard shortcuts of the approvals page. */
export function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <InfoDialog title={t("approvals.keysTitle")} size="sm" onClose={onClose}>
      <dl className={classes.keyList} data-testid="keys-help">
        {shortcuts.map((key) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{t(`approvals.key.${key}`)}</dd>
          </div>
        ))}
      </dl>
    </InfoDialog>
  );
}
