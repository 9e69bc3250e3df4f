import { Button, Group, Modal, SegmentedControl, Select, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { asApiError } from "../../api/client";
import { usePreviewSync } from "../../api/governance";
import type { Entity, SyncPreview } from "../../api/types";
import { entityKinds } from "../../lib/entity";
import { useWords } from "../../lib/use-words";
import { ErrorState } from "../Feedback";
import { FileText } from "../FileText";

const formats = ["csv", "backstage"] as const;

interface Props {
  onPreview: (source: string, preview: SyncPreview) => void;
  onClose: () => void;
}

/** Entities out of a file, as a source of their own; nothing changes before the preview was looked at. */
export function UploadDialog({ onPreview, onClose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const [source, setSource] = useState("");
  const [format, setFormat] = useState<(typeof formats)[number]>("csv");
  const [kind, setKind] = useState<Entity["kind"]>("application");
  const [content, setContent] = useState("");
  const [tried, setTried] = useState(false);
  const preview = usePreviewSync();
  const refusal = preview.error ? asApiError(preview.error) : undefined;
  const refused = refusal?.fieldMessage("content");

  const take = (text: string, name?: string) => {
    setContent(text);
    if (name && /\.ya?ml$/i.test(name)) setFormat("backstage");
    if (name && /\.csv$/i.test(name)) setFormat("csv");
  };
  const submit = () => {
    setTried(true);
    const id = source.trim();
    if (id === "" || content.trim() === "") return;
    preview.mutate({ source: id, body: { format, content, ...(format === "csv" ? { kind } : {}) } }, { onSuccess: (found) => onPreview(id, found) });
  };

  return (
    <Modal opened onClose={onClose} size="lg" title={<Text fw={620}>{t("sources.uploadTitle")}</Text>} closeButtonProps={{ "aria-label": t("action.cancel") }}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
        data-testid="catalog-upload-form"
      >
        <Stack gap="md">
          <TextInput label={t("sources.uploadName")} description={t("sources.uploadNameHint")} required maxLength={63} value={source} onChange={(event) => setSource(event.currentTarget.value)} error={tried && source.trim() === "" && t("sources.error.name")} data-autofocus data-testid="upload-source" />
          <Group gap="sm" align="flex-end">
            <SegmentedControl aria-label={t("sources.format")} data={formats.map((each) => ({ value: each, label: t(`sources.formats.${each}`) }))} value={format} onChange={(next) => setFormat(next === "backstage" ? "backstage" : "csv")} />
            {format === "csv" && <Select label={t("sources.rows")} allowDeselect={false} data={entityKinds.map((each) => ({ value: each, label: t(`entities.kinds.${each}`) }))} value={kind} onChange={(next) => setKind(entityKinds.find((each) => each === next) ?? kind)} data-testid="upload-kind" />}
          </Group>
          <FileText label={t("sources.content")} description={t("sources.uploadHint")} accept=".csv,.yaml,.yml,text/csv" choose={t("sources.file")} value={content} onChange={take} error={(tried && content.trim() === "" && t("sources.error.content")) || (refused && words.said(refused)) || undefined} testId="catalog-content" />
          {refusal && refused === undefined && <ErrorState error={refusal} title={t("error.actionTitle")} />}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={onClose}>
              {t("action.cancel")}
            </Button>
            <Button type="submit" loading={preview.isPending} data-testid="upload-preview">
              {t("sources.preview")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
