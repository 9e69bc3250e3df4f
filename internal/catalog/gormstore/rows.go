package gormstore

import (
	"crypto/sha256"
	"encoding/hex"
)

type entityRow struct {
	Kind    string `gorm:"primaryKey"`
	ID      string `gorm:"primaryKey"`
	Source  string
	Record  string
	GoneAt  int64
	Version int64
}

func (entityRow) TableName() string { return "catalog_entities" }

type previewRow struct {
	Token     string `gorm:"primaryKey"`
	Source    string
	Actor     string
	Revision  int64
	Reading   []byte
	CreatedAt int64 `gorm:"autoCreateTime:false"`
}

func (previewRow) TableName() string { return "catalog_previews" }

type sourceRow struct {
	Source string `gorm:"primaryKey"`
	Status string
}

func (sourceRow) TableName() string { return "catalog_sources" }

// hash returns the stored form of a token, so that a copy of the database cannot be used to apply previews.
func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
