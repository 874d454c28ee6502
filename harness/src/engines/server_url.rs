//! A running server, named by a URL.
//!
//! The forms are `mysql://user:password@host:port/` and `mysql://user:password@localhost/?socket=/path`.

use std::fmt;

use mysql::{Opts, OptsBuilder};

use crate::error::{HarnessError, Result};

/// The connection options of a server; its `Debug` and `Display` forms omit the password.
#[derive(Clone)]
pub struct ServerUrl {
    options: Opts,
}

impl ServerUrl {
    /// Parses a URL.
    ///
    /// # Errors
    /// [`HarnessError::Usage`] with the allowed forms.
    pub fn parse(url: &str) -> Result<Self> {
        let refused = |problem: String| {
            HarnessError::Usage(format!(
                "{problem}: a server is named as in mysql://user:password@host:3306/ or \
                 mysql://user:password@localhost/?socket=/run/mysqld/mysqld.sock"
            ))
        };
        let options = Opts::from_url(url).map_err(|error| refused(error.to_string()))?;
        if let Some(schema) = options.get_db_name().filter(|name| !name.is_empty()) {
            return Err(refused(format!(
                "the URL names the schema '{schema}', but the benchmark uses schemas of its own only"
            )));
        }
        // The client library would switch to a local server's socket by default; this setting keeps to the URL.
        let by_socket = options.get_socket().is_some();
        let options = OptsBuilder::from_opts(options).prefer_socket(by_socket);
        Ok(Self {
            options: options.into(),
        })
    }

    /// Returns the options for a connection.
    #[must_use]
    pub fn options(&self) -> Opts {
        self.options.clone()
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.options.get_user().unwrap_or("");
        let at = if user.is_empty() { "" } else { "@" };
        match self.options.get_socket() {
            Some(socket) => write!(out, "mysql://{user}{at}localhost/?socket={socket}"),
            None => write!(
                out,
                "mysql://{user}{at}{}:{}/",
                self.options.get_ip_or_hostname(),
                self.options.get_tcp_port()
            ),
        }
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ServerUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_their_passwords() {
        for (url, shown) in [
            (
                "mysql://me:secret@db.example:3307/",
                "mysql://me@db.example:3307/",
            ),
            ("mysql://me:secret@127.0.0.1", "mysql://me@127.0.0.1:3306/"),
            (
                "mysql://root:secret@localhost/?socket=/tmp/a.sock",
                "mysql://root@localhost/?socket=/tmp/a.sock",
            ),
        ] {
            let parsed = ServerUrl::parse(url).expect("right");
            assert_eq!(parsed.to_string(), shown);
            assert!(!format!("{parsed:?}").contains("secret"));
            assert_eq!(
                parsed.options().get_pass(),
                url.contains("secret").then_some("secret")
            );
            assert_eq!(parsed.options().get_prefer_socket(), url.contains("socket"));
        }
    }

    #[test]
    fn what_is_no_url_of_a_server_is_refused_with_what_is() {
        for (url, told) in [
            ("postgres://me@db/", "mysql://user"),
            ("db.example", "mysql://user"),
            ("mysql://me@db/shop", "'shop'"),
        ] {
            let message = ServerUrl::parse(url).expect_err("wrong").to_string();
            assert!(message.contains(told), "{message}");
        }
    }
}
