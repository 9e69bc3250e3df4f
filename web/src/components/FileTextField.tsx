import { Button, FileButton, Group, Textarea } from "@mantine/core";
import { IconFileUpload } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import classes from "./request/Request.module.css";

interface Props {
  label: string;
  description?: string;
  accept: string;
  choose: string;
  value: string;
  onChange: (text: string, fileName?: string) => void;
  error?: string | undefined;
  testId: string;
  required?: boolean;
}

/** FileTextField takes text that is read from a file or pasted. */
export function FileTextField({ label, description, accept, choose, value, onChange, error, testId, required = true }: Props) {
  const { t } = useTranslation();
  return (
    <div>
      <Textarea className={classes.code} label={label} description={description} required={required} minRows={6} maxRows={14} autosize spellCheck={false} value={value} onChange={(event) => onChange(event.currentTarget.value)} error={error} data-testid={testId} />
      <Group mt={8}>
        <FileButton accept={accept} onChange={(file) => void file?.text().then((text) => onChange(text, file.name))} inputProps={{ "aria-label": choose }}>
          {(props) => (
            <Button {...props} variant="default" size="xs" leftSection={<IconFileUpload size={15} aria-hidden />}>
              {choose}
            </Button>
          )}
        </FileButton>
        {value !== "" && (
          <Button variant="subtle" color="gray" size="xs" onClick={() => onChange("")}>
            {t("fileText.clear")}
          </Button>
        )}
      </Group>
    </div>
  );
}
