import { Modal, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import classes from "./Approvals.module.css";
import { shortcuts } from "./shortcuts";

export function Keys({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Modal opened onClose={onClose} size="sm" title={<Text fw={620}>{t("approvals.keysTitle")}</Text>} closeButtonProps={{ "aria-label": t("action.close") }}>
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
    </Modal>
  );
}
