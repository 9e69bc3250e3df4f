// Package artifacts makes the files of a release beside the images: archives of the kubectl plugin, charts, the krew manifest, the release notes and the
// checksums. The same input gives the same bytes.
package artifacts

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// File is a file in an archive.
type File struct {
	// Name is the path in the archive, with slashes.
	Name string
	Mode fs.FileMode
	// Content is the whole file.
	Content []byte
}

// TarGz returns a compressed tar archive with the files in the order of their names. All belong to root and have the time.
func TarGz(files []File, modified time.Time) ([]byte, error) {
	plain, err := Tar(files, modified)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress an archive: %w", err)
	}
	if _, err := z.Write(plain); err != nil {
		return nil, fmt.Errorf("compress an archive: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress an archive: %w", err)
	}
	return b.Bytes(), nil
}

// Tar is TarGz without compression.
func Tar(files []File, modified time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range sorted(files) {
		h := &tar.Header{
			Name:     f.Name,
			Typeflag: tar.TypeReg,
			Mode:     int64(f.Mode.Perm()),
			Size:     int64(len(f.Content)),
			ModTime:  modified.Truncate(time.Second),
			Format:   tar.FormatUSTAR,
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("write %s to an archive: %w", f.Name, err)
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, fmt.Errorf("write %s to an archive: %w", f.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("end an archive: %w", err)
	}
	return b.Bytes(), nil
}

// Zip returns a ZIP archive with the files in the order of their names. All have the time.
func Zip(files []File, modified time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range sorted(files) {
		h := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: modified.UTC().Truncate(2 * time.Second)} // ZIP counts in steps of two seconds
		h.SetMode(f.Mode)
		entry, err := w.CreateHeader(h)
		if err != nil {
			return nil, fmt.Errorf("write %s to an archive: %w", f.Name, err)
		}
		if _, err := entry.Write(f.Content); err != nil {
			return nil, fmt.Errorf("write %s to an archive: %w", f.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("end an archive: %w", err)
	}
	return b.Bytes(), nil
}

func sorted(files []File) []File {
	return slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
}

// Folder returns the files below a folder, with names that begin with prefix. Executable files keep that, and no other difference of modes is kept.
func Folder(dir, prefix string) ([]File, error) {
	var files []File
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", path)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		files = append(files, File{prefix + path, mode, content})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the folder %s: %w", dir, err)
	}
	return files, nil
}
