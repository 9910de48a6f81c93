//! A bundle: a rendered declaration with its content, as files (`declaration.json`, `blobs/sha256/HEX…`). It is read by
//! hand, from a folder of the person who types the command; nothing in it is trusted before its digest was computed.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tenure_actors::database::DatabaseError;
use tenure_actors::file::{self, FileError, Links};
use tenure_protocol::content::{PIECE, Piece};
use tenure_protocol::declaration::{Declaration, DeclarationError, MOST_BYTES};
use tenure_protocol::id::Digest;
use tenure_protocol::refusal::{Explain, Refusal, chain};
use tenure_protocol::resource::Content;

use crate::reconcile::admit::{AdmitRefusal, Admitted, Standing};
use crate::reconcile::intake::{self, IntakeError};
use crate::resource::{Contents, ContentsError};
use crate::store::{ContentError, Store};
use crate::walk::read::read_all;

/// A bundle whose declaration was read.
#[derive(Debug, Clone)]
pub struct Bundle {
    folder: PathBuf,
    declaration: Arc<Declaration>,
    sha256: Digest,
    bytes: Arc<[u8]>,
}

/// Why a bundle is not taken.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file of it is missing, is none, or cannot be read.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// Its declaration is not one.
    #[error("{} is not a declaration", path.display())]
    Declaration {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: DeclarationError,
    },
    /// A file of content has not the size or digest it is named by.
    #[error("{} is not the content it is named by", path.display())]
    Content {
        /// Which file.
        path: PathBuf,
    },
    /// It may not replace what is held.
    #[error(transparent)]
    Refused(#[from] AdmitRefusal),
    /// The store did not keep it.
    #[error("the bundle could not be kept")]
    Store(#[source] ContentError),
}

impl Bundle {
    /// Reads the declaration of the bundle in `folder`. Its content is read when it is needed.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, BundleError> {
        let folder = folder.into();
        let path = folder.join("declaration.json");
        let bytes = file::read(&path, Links::Refused, MOST_BYTES)?;
        let declaration =
            Declaration::parse(&bytes).map_err(|source| BundleError::Declaration { path, source })?;
        let sha256 = Digest::of_declaration(&bytes);
        Ok(Self { folder, declaration: Arc::new(declaration), sha256, bytes: bytes.into() })
    }

    /// Refuses a bundle that lacks a content, or has another one under its name. [`Bundle::keep`] finds that out by
    /// itself, while it copies.
    pub fn check(&self) -> Result<(), BundleError> {
        self.declaration.contents().iter().try_for_each(|content| {
            let path = || self.blob(content.sha256);
            let (mut hasher, mut left) = (Sha256::new(), content.size);
            let read = read_all(&mut self.content(content)?, &mut |bytes| {
                hasher.update(bytes);
                // What is added meanwhile is not read to its end.
                left = left.checked_sub(length(bytes)).ok_or(ErrorKind::FileTooLarge)?;
                Ok(())
            });
            match read {
                Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                    return Err(BundleError::Content { path: path() });
                }
                Err(source) => return Err(FileError::Io { path: path(), source }.into()),
                Ok(()) => {}
            }
            match hasher.finalize().as_slice() == content.sha256.as_bytes() {
                true => Ok(()),
                false => Err(BundleError::Content { path: path() }),
            }
        })
    }

    /// Why it may not replace what is held, if it may not. It changes nothing.
    pub fn refusal(&self, store: &Store) -> Option<Refusal> {
        let admitted = intake::admit(store, None, &self.declaration, self.sha256);
        admitted.err().map(|error| BundleError::from(error).refusal())
    }

    /// What it declares.
    pub const fn declaration(&self) -> &Arc<Declaration> {
        &self.declaration
    }

    /// The digest of the declaration's bytes.
    pub const fn sha256(&self) -> Digest {
        self.sha256
    }
}

impl Contents for Bundle {
    fn copy(
        &self,
        sha256: Digest,
        take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), ContentsError> {
        let unreadable = |error: std::io::Error| ContentsError::Unreadable { sha256, why: error.to_string() };
        let opened = file::open(&self.blob(sha256), Links::Refused).map_err(|error| match error {
            FileError::Absent { .. } => ContentsError::Missing(sha256),
            other => ContentsError::Unreadable { sha256, why: chain(&other) },
        })?;
        let mut file = opened.into_file();
        let mut piece = vec![0; usize::try_from(PIECE).unwrap_or(usize::MAX)];
        loop {
            match file.read(&mut piece).map_err(unreadable)? {
                0 => return Ok(()),
                read => take(piece.get(..read).unwrap_or_default()).map_err(ContentsError::Taking)?,
            }
        }
    }
}

impl Bundle {
    fn blob(&self, sha256: Digest) -> PathBuf {
        self.folder.join("blobs/sha256").join(sha256.to_string())
    }

    /// Admits the declaration and copies it with all its content into the store. Refused whole or taken whole; what was
    /// copied of a bundle that is refused on the way is used by nothing.
    pub fn keep(&self, store: &Store, standing: Option<&Standing>) -> Result<Admitted, BundleError> {
        let admitted = intake::admit(store, standing, &self.declaration, self.sha256)?;
        for chunk in store.missing(&self.declaration.contents()).map_err(kept)?.chunks(AT_ONCE) {
            let pieces = chunk.iter().filter(|(content, _)| content.size <= u64::from(PIECE));
            let pieces: Vec<Piece> =
                pieces.map(|(content, _)| self.whole(content)).collect::<Result<_, _>>()?;
            if !pieces.is_empty() {
                store.put_pieces(pieces).map_err(BundleError::Store)?;
            }
            for (content, have) in chunk.iter().filter(|(content, _)| content.size > u64::from(PIECE)) {
                self.copy_large(store, content, *have)?;
            }
        }
        if admitted == Admitted::New {
            intake::keep(store, &self.declaration, self.sha256, &self.bytes).map_err(kept)?;
        }
        Ok(admitted)
    }

    /// The file of this content, which has its size.
    fn content(&self, content: &Content) -> Result<File, BundleError> {
        let path = self.blob(content.sha256);
        let opened = file::open(&path, Links::Refused)?;
        if opened.size() == content.size {
            Ok(opened.into_file())
        } else {
            Err(BundleError::Content { path })
        }
    }

    fn whole(&self, content: &Content) -> Result<Piece, BundleError> {
        let path = || self.blob(content.sha256);
        let mut bytes = Vec::new();
        let read = self.content(content)?.take(content.size.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|source| FileError::Io { path: path(), source })?;
        if u64::try_from(bytes.len()) != Ok(content.size) {
            return Err(BundleError::Content { path: path() });
        }
        Ok(Piece { sha256: content.sha256, size: content.size, offset: 0, bytes })
    }

    fn copy_large(&self, store: &Store, content: &Content, have: u64) -> Result<(), BundleError> {
        let path = self.blob(content.sha256);
        let unreadable = |source| FileError::Io { path: path.clone(), source };
        let mut file = self.content(content)?;
        file.seek(SeekFrom::Start(have)).map_err(unreadable)?;
        let mut offset = have;
        while offset < content.size {
            let mut bytes = Vec::new();
            let read = file.by_ref().take(u64::from(PIECE)).read_to_end(&mut bytes).map_err(unreadable)?;
            if read == 0 {
                return Err(BundleError::Content { path });
            }
            let piece = Piece { sha256: content.sha256, size: content.size, offset, bytes };
            offset = offset.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
            store.put_piece(piece).map_err(BundleError::Store)?;
        }
        Ok(())
    }
}

fn length(bytes: &[u8]) -> u64 {
    bytes.len().try_into().unwrap_or(u64::MAX)
}

/// So many small contents share one transaction.
const AT_ONCE: usize = 256;

impl From<IntakeError> for BundleError {
    fn from(error: IntakeError) -> Self {
        match error {
            IntakeError::Refused(refusal) => Self::Refused(refusal),
            IntakeError::Store(error) => kept(error),
        }
    }
}

fn kept(error: DatabaseError) -> BundleError {
    BundleError::Store(error.into())
}

impl Explain for BundleError {
    fn code(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "bundle_unreadable",
            Self::Declaration { .. } => "bundle_declaration",
            Self::Content { .. } => "bundle_content",
            Self::Refused(refusal) => refusal.code(),
            Self::Store(ContentError::Digest { .. }) => "bundle_content",
            Self::Store(_) => "store_unwritable",
        }
    }

    fn meaning(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.meaning(),
            Self::Store(ContentError::Store(_)) => {
                "nothing of it is applied; the declaration held stays".to_owned()
            }
            Self::Unreadable(_) | Self::Declaration { .. } | Self::Content { .. } | Self::Store(_) => {
                "the bundle is not whole, so nothing of it is applied".to_owned()
            }
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.remedy(),
            Self::Store(ContentError::Store(_)) => "make room for the store, then apply it again".to_owned(),
            Self::Unreadable(_) | Self::Declaration { .. } | Self::Content { .. } | Self::Store(_) => {
                "render it again with `tenure render DIR --node N --out B`".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests;
