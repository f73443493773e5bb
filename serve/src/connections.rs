//! Connections: accepted, limited, and ended.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Sleep;
use tower::ServiceExt;

use super::app::App;
use super::config::seconds;
use super::router::whole;

/// Longest time from the begin of a connection, or from the end of a request, to the end of the next request's
/// headers.
const HEADER_TIME: Duration = Duration::from_secs(60);

/// Most bytes of a request's headers.
const HEADER_BYTES: usize = 64 << 10;

/// Most headers of a request.
const HEADERS_MAX: usize = 100;

/// The connections of a server.
pub(crate) struct Connections {
    app: Arc<App>,
    router: Router,
    permits: Arc<Semaphore>,
    graceful: GracefulShutdown,
}

impl Connections {
    /// No connections yet.
    pub(crate) fn new(app: &Arc<App>) -> Connections {
        let permits = Arc::new(Semaphore::new(app.config.connections_max.max(1)));
        let (app, router) = (Arc::clone(app), whole(app));
        Connections { app, router, permits, graceful: GracefulShutdown::new() }
    }

    /// Accepts connections for ever.
    pub(crate) async fn accept(&self, listener: TcpListener) -> Infallible {
        loop {
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            let (stream, address) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // The system may be out of file descriptors for a while.
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            // Tokens are small, and each is to be sent at once.
            let _ = stream.set_nodelay(true);
            let router = self.router.clone();
            let service = service_fn(move |mut request: hyper::Request<Incoming>| {
                request.extensions_mut().insert(ConnectInfo(address));
                router.clone().oneshot(request.map(Body::new))
            });
            let io = TokioIo::new(Watched::new(stream, seconds(self.app.config.stalled_s)));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_TIME)
                .max_buf_size(HEADER_BYTES)
                .max_headers(HEADERS_MAX)
                .serve_connection(io, service);
            let connection = self.graceful.watch(connection);
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "connection ended");
                }
                drop(permit);
            });
        }
    }

    /// Asks all connections to end after their present request; the future ends when they have.
    pub(crate) fn close(self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.graceful.shutdown())
    }
}

/// A connection that fails if its client takes nothing for a while.
struct Watched {
    stream: TcpStream,
    patience: Duration,
    /// When it fails, while it waits for the client to take something.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Watched {
    fn new(stream: TcpStream, patience: Duration) -> Watched {
        Watched { stream, patience, stalled: None }
    }

    /// Notes whether a write has waited for too long.
    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => {
                let reason = "the client reads nothing";
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, reason)))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
