"""What runs inside the guest: the desktop observer and the kernel gateway's launcher. Imports nothing of deskfork."""
