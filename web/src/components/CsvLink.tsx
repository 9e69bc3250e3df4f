import { Button } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import classes from "./DataTable.module.css";

/** CsvLink downloads a table that the server writes as CSV. It looks like the button of a table that the browser writes (TableDownload). */
export function CsvLink({ href, testId }: { href: string; testId: string }) {
  const { t } = useTranslation();
  return (
    <div className={classes.download}>
      <Button component="a" href={href} download variant="subtle" color="gray" size="compact-sm" leftSection={<IconDownload size={15} aria-hidden />} data-testid={testId}>
        {t("accessRecords.csv")}
      </Button>
    </div>
  );
}
