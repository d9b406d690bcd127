"""The button labels that nano knows: each is one token of its tokenizer."""

from __future__ import annotations

LABELS = (
    "Guardar", "Cancelar", "Aceptar", "Buscar", "Enviar", "Eliminar", "Editar", "Añadir",
    "Cerrar", "Abrir", "Salir", "Ayuda", "Inicio", "Perfil", "Ajustes", "Imprimir",
    "Descargar", "Subir", "Compartir", "Copiar", "Pegar", "Cortar", "Deshacer", "Rehacer",
    "Siguiente", "Anterior", "Continuar", "Volver", "Finalizar", "Comprar", "Pagar", "Carrito",
    "Pedidos", "Facturas", "Clientes", "Productos", "Informes", "Usuarios", "Mensajes", "Archivo",
    "Opciones", "Idioma", "Contraseña", "Registrarse", "Iniciar sesión", "Cerrar sesión",
    "Nuevo pedido", "Nueva carpeta", "Ver más", "Ver todo", "Guardar como", "Restablecer",
    "Confirmar", "Rechazar", "Exportar", "Importar", "Filtrar", "Ordenar", "Actualizar",
    "Crear cuenta", "Teléfono", "Dirección", "Categorías", "Configuración",
)  # fmt: skip
"""64 labels of Spanish interfaces; index = class of the vision tower's training head."""
